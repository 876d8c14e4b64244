// SPDX-License-Identifier: BSD-2-Clause
// Thin wrappers of the futex system call. Words may lie in shared memory (shared = true) or be private to the
// process.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct {

// Sleeps while *word == expected, at most timeout_ns (negative: no limit). Returns early on wake-ups and
// signals: callers look at their condition again. Never reports errors: a failed wait is a spurious wake-up.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns, bool shared);

// Wakes up to `count` sleepers. One system call.
void futex_wake(const std::atomic<uint32_t>& word, int count, bool shared);

}  // namespace viaduct
