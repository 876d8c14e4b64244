// SPDX-License-Identifier: BSD-2-Clause
// Asymmetric store-load barrier: the side that runs often pays a compiler barrier only, the side that runs
// rarely makes every running thread of the machine that takes part execute a full fence (membarrier).
// spec/performance R7. Where the kernel has no membarrier, both sides fall
// back to real fences.
#pragma once

#include <atomic>

namespace viaduct {

namespace detail {
extern std::atomic<bool> light_needs_fence;  // true when membarrier(GLOBAL_EXPEDITED) is missing here
}

// Registers this process with the kernel; call once per process before the first light_barrier that matters.
// Idempotent.
void asymmetric_barrier_init();

// Often-run side: orders an earlier store before a later load, given that the other side uses
// heavy_barrier().
inline void light_barrier() {
    if (detail::light_needs_fence.load(std::memory_order_relaxed)) [[unlikely]] {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
}

// The same where it is known that light barriers are free of fences (asymmetric_barrier_available()).
inline void free_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Rarely-run side; microseconds. Process-wide and across all processes that have called
// asymmetric_barrier_init().
void heavy_barrier();

// The same for threads of this process only; cheaper.
void heavy_barrier_process();

// Whether this process' light side is free of fences; published to peers so that both agree on what to do.
bool asymmetric_barrier_available();

}  // namespace viaduct
