// SPDX-License-Identifier: BSD-2-Clause
// See error.hpp.
#include "mpi-adi/transport/adi/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace viaduct::adi {

int fail(int code, const char* format, ...) {
    char sentence[768];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    keep_error(sentence);
    return code;
}

}  // namespace viaduct::adi
