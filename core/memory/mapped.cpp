// SPDX-License-Identifier: BSD-2-Clause
#include "core/memory/mapped.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace viaduct {

bool is_mapped(const void* at, size_t n) {
    static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(at) & ~(page - 1);
    const uintptr_t end = reinterpret_cast<uintptr_t>(at) + n;
    const int saved = errno;  // system calls of ours leave it as the application had it
    const bool hole = ::msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) != 0 && errno == ENOMEM;
    errno = saved;
    return !hole;
}

}  // namespace viaduct
