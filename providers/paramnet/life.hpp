// SPDX-License-Identifier: BSD-2-Clause
// Whether the process of a NIC context is still the program that opened it. Its peers read that in a word of
// its owner page, which no other process can write. The word holds the number of a thread that lives as long as
// the context and has given it to the kernel as a robust futex: the kernel marks it when that thread ends in
// whatever way, and so before the process' memory is another program's (execve), which no pidfd tells of. A
// forked child does not inherit it.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

namespace viaduct::paramnet {

// Set once and never taken back.
inline constexpr bool has_ended(uint32_t life) { return (life & FUTEX_OWNER_DIED) != 0; }

// What a peer that had ended before it was met is remembered by: a number that no word ever has.
inline constexpr uint32_t kEndedBefore = UINT32_MAX;

// Holds the word for the calling thread until the object's end, which finds the word 0. Where the kernel has
// no robust futexes, or the call is not allowed, the word stays 0.
class LifeHeld {
public:
    explicit LifeHeld(std::atomic<uint32_t>& life);
    ~LifeHeld();
    LifeHeld(const LifeHeld&) = delete;
    LifeHeld& operator=(const LifeHeld&) = delete;

private:
    std::atomic<uint32_t>& life_;
    // The thread's own list, which takes the place of the one that the C library keeps for mutexes: a thread
    // of ours has no robust mutexes.
    robust_list_head head_{};
    robust_list entry_{};
    robust_list_head* before_ = nullptr;
    bool held_ = false;
};

}  // namespace viaduct::paramnet
