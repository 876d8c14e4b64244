// SPDX-License-Identifier: BSD-2-Clause
// clock_gettime() of a test program, found before the one of the C library.
#include "tests/moved_clock.hpp"

#include <dlfcn.h>

#include <atomic>
#include <ctime>

namespace {

thread_local bool stands_still = false;
thread_local int64_t moved_by = 0, stands_at = 0;

using Read = int (*)(clockid_t, timespec*);

Read system_read() {
    static std::atomic<Read> found{nullptr};
    Read read = found.load();
    if (read == nullptr) {
        read = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "clock_gettime"));
        found.store(read);
    }
    return read;
}

constexpr int64_t kSecond = 1'000'000'000;

int64_t ns_of(const timespec& t) { return int64_t{t.tv_sec} * kSecond + t.tv_nsec; }

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* to) noexcept {
    const int result = system_read()(clock, to);
    if (result != 0 || clock != CLOCK_MONOTONIC || (moved_by == 0 && !stands_still)) return result;
    const int64_t ns = stands_still ? stands_at : ns_of(*to) + moved_by;
    to->tv_sec = static_cast<decltype(to->tv_sec)>(ns / kSecond);
    to->tv_nsec = static_cast<decltype(to->tv_nsec)>(ns % kSecond);
    return 0;
}

extern "C" __attribute__((visibility("default"))) void viaduct_test_move_clock(int64_t ns) {
    moved_by += ns;
    stands_at += ns;
}

namespace viaduct::tests {

MovedClock::MovedClock() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    stands_at = ns_of(t);
    stands_still = true;
}

MovedClock::~MovedClock() { stands_still = false; }

int64_t MovedClock::now() const { return stands_at; }

void MovedClock::move(std::chrono::nanoseconds by) { stands_at += by.count(); }

}  // namespace viaduct::tests
