// SPDX-License-Identifier: BSD-2-Clause
#include "core/sync/asymmetric_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace viaduct {

namespace detail {
constinit std::atomic<bool> light_needs_fence{true};  // until the kernel has promised otherwise
}

namespace {
long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }
}  // namespace

void asymmetric_barrier_init() {
    // Not a guarded static: a child that is forked meanwhile would wait for ever for a thread that it does not have.
    static constinit std::atomic<bool> done{false};
    if (done.load(std::memory_order_acquire)) return;
    const bool global = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    const bool own = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    detail::light_needs_fence.store(!(global && own), std::memory_order_relaxed);
    done.store(true, std::memory_order_release);
}

namespace {
// libvipl and every provider carry a copy of this code, and all copies must agree before the first lock is
// taken: so each registers as it is loaded (two system calls).
[[maybe_unused]] const bool registered_at_load = (asymmetric_barrier_init(), true);
}  // namespace

bool asymmetric_barrier_available() { return !detail::light_needs_fence.load(std::memory_order_relaxed); }

void heavy_barrier() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asymmetric_barrier_available()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void heavy_barrier_process() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asymmetric_barrier_available()) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace viaduct
