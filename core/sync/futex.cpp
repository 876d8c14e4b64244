// SPDX-License-Identifier: BSD-2-Clause
#include "core/sync/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "core/clock/clock.hpp"

namespace viaduct {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel reads the word itself");

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns, bool shared) {
    timespec limit{};
    timespec* limit_ptr = nullptr;
    if (timeout_ns >= 0) {
        limit = timespec_of(timeout_ns);
        limit_ptr = &limit;
    }
    const int saved_errno = errno;
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, limit_ptr, nullptr, 0);
    errno = saved_errno;
}

void futex_wake(const std::atomic<uint32_t>& word, int count, bool shared) {
    const int saved_errno = errno;
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
    errno = saved_errno;
}

}  // namespace viaduct
