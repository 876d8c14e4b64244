// SPDX-License-Identifier: BSD-2-Clause
// A system call on another process' memory that is made only while that process still permits it. Between the
// look at its permission and the call the kernel may stop us (SIGSTOP, a debugger, a full machine) for longer
// than the other side waits for us: then the call must not be made when we go on (spec/states 3 rule 4).
// Used by cross_copy.cpp, under a queue's lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::paramnet {

// The call is permitted while the first word is 0 and the other two have those values. All lie in memory that
// the other side writes; of `life` the kernel takes the value away when the other side's memory goes
// (life.hpp).
struct Guard {
    const std::atomic<uint32_t>* closed;
    const std::atomic<uint32_t>* handle;
    uint32_t expected = 0;
    uint32_t expected_life = 0;
    const std::atomic<uint32_t>* life;
};

inline constexpr long kNotPermitted = -4097;  // below every -errno

// process_vm_readv or process_vm_writev (`number`, five arguments, no flags): its result, -errno, or
// kNotPermitted.
long guarded_call(const Guard&, long number, long pid, const void* local, long local_count,
                  const void* remote, long remote_count);

// True where a stop between look and call is noticed: restartable sequences (rseq(2)) of this thread are
// registered. Elsewhere the call follows the look as closely as can be.
bool guard_is_tight();

}  // namespace viaduct::paramnet
