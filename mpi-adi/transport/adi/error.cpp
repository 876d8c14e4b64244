// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace viaduct::adi {

namespace {
thread_local char last_error[256];
}

int fail(int code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return code;
}

}  // namespace viaduct::adi

extern "C" const char* mpip_last_error(void) { return viaduct::adi::last_error; }
