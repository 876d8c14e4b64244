// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/life.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace viaduct::paramnet {

LifeHeld::LifeHeld(std::atomic<uint32_t>& life) : life_(life) {
    const int saved_errno = errno;
    size_t bytes = 0;
    if (::syscall(SYS_get_robust_list, 0, &before_, &bytes) != 0) before_ = nullptr;
    head_.list.next = &entry_;
    entry_.next = &head_.list;
    head_.futex_offset = reinterpret_cast<char*>(&life_) - reinterpret_cast<char*>(&entry_);
    // The word first: what is on the list must be ours.
    life_.store(static_cast<uint32_t>(::gettid()), std::memory_order_release);
    held_ = ::syscall(SYS_set_robust_list, &head_, sizeof head_) == 0;
    if (!held_) life_.store(0, std::memory_order_release);
    errno = saved_errno;
}

LifeHeld::~LifeHeld() {
    if (!held_) return;
    const int saved_errno = errno;
    life_.store(0, std::memory_order_release);
    ::syscall(SYS_set_robust_list, before_, sizeof head_);
    errno = saved_errno;
}

}  // namespace viaduct::paramnet
