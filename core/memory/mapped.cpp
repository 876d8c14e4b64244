// SPDX-License-Identifier: BSD-2-Clause
// System calls that touch memory without a signal; see mapped.hpp.
#include "core/memory/mapped.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/process/keep_errno.hpp"

// Debian 12 has them; an older C library may not.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace viaduct {

namespace {

uintptr_t page_bytes() {
    static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    return page;
}

// Applies `touch` to each page of the range until one answers EFAULT. The futex operations below access one word with
// the permissions of this process and do not change its value.
template <class Touch>
bool each_page(const void* at, size_t n, Touch touch) {
    const uintptr_t end = reinterpret_cast<uintptr_t>(at) + n;
    bool good = true;
    for (uintptr_t page = reinterpret_cast<uintptr_t>(at) & ~(page_bytes() - 1); good && page < end;
         page += page_bytes())
        good = touch(reinterpret_cast<void*>(page)) >= 0 || errno != EFAULT;
    return good;
}

// Has the kernel map the pages of the range as a load or a store would, in one call. False: some cannot be, or the
// kernel does not have the request (before 5.14), forbids it, or keeps it from such memory.
bool populate(const void* at, size_t n, int request) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(at) & ~(page_bytes() - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(at) + n + page_bytes() - 1) & ~(page_bytes() - 1);
    return end - begin > page_bytes() && ::madvise(reinterpret_cast<void*>(begin), end - begin, request) == 0;
}

}  // namespace

// FUTEX_CMP_REQUEUE reads the word to compare it. It may wake and move 0 waiters, so it has no effect.
bool can_read(const void* at, size_t n) {
    const KeepErrno keep;
    if (populate(at, n, MADV_POPULATE_READ)) return true;
    uint32_t other = 0;
    return each_page(at, n, [&other](void* page) {
        return ::syscall(SYS_futex, page, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0L, &other, 0);
    });
}

// FUTEX_WAKE_OP writes the word back with no bit set in addition, atomically. At worst a thread that sleeps on the word
// is woken without a reason, which every user of a futex has to expect.
bool can_write(void* at, size_t n) {
    const KeepErrno keep;
    if (populate(at, n, MADV_POPULATE_WRITE)) return true;
    uint32_t other = 0;
    return each_page(at, n, [&other](void* page) {
        return ::syscall(SYS_futex, &other, FUTEX_WAKE_OP_PRIVATE, 0, 0L, page,
                         FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0));
    });
}

}  // namespace viaduct
