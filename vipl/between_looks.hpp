// SPDX-License-Identifier: BSD-2-Clause
// What a poll that found nothing does before it returns. Any thread.
#pragma once

#include <atomic>

#include "core/sync/pause.hpp"

namespace viaduct::vipl {

inline std::atomic<const void*> last_polled_in_vain{nullptr};

// One pause between two looks at the same queue: looking without a break takes the line away from its writer
// again and again (performance-facts, "What makes the fast ones fast" 4). A program that looks at many queues
// in turn needs none.
inline void pause_between_looks(const void* queue) {
    if (last_polled_in_vain.load(std::memory_order_relaxed) == queue) {
        cpu_pause();
    } else {
        last_polled_in_vain.store(queue, std::memory_order_relaxed);
    }
}

}  // namespace viaduct::vipl
