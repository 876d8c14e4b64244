// SPDX-License-Identifier: BSD-2-Clause
// Time as the library sees it: CLOCK_MONOTONIC nanoseconds, and deadlines made from VIPL timeouts (milliseconds).
// Deadline, kNever and kOnlyConnected are in viaduct/provider.hpp.
#pragma once

#include <cstdint>
#include <ctime>

#include "viaduct/provider.hpp"

namespace viaduct {

inline int64_t now_ns() {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// VIP_INFINITE is 0xFFFFFFFF; callers also pass all-ones of a long: everything from 0xFFFFFFFF up means "no
// limit" (spec/header 1).
inline Deadline deadline_from_timeout(uint64_t milliseconds) {
    if (milliseconds >= 0xFFFFFFFFu) return kNever;
    return now_ns() + static_cast<int64_t>(milliseconds) * 1'000'000;
}

// Nanoseconds left, not below 0; -1 for kNever (as futex_wait and poll take it). kOnlyConnected (0) is a time that has
// passed: 0.
inline int64_t remaining_ns(Deadline deadline) {
    if (deadline == kNever) return -1;
    const int64_t left = deadline - now_ns();
    return left > 0 ? left : 0;
}

// For system calls. In a program of 32 bits time_t has 32 bits; VIPL timeouts are below 50 days.
inline timespec timespec_of(int64_t ns) {
    timespec t{};
    t.tv_sec = static_cast<decltype(t.tv_sec)>(ns / 1'000'000'000);
    t.tv_nsec = static_cast<decltype(t.tv_nsec)>(ns % 1'000'000'000);
    return t;
}

}  // namespace viaduct
