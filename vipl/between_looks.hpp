// SPDX-License-Identifier: BSD-2-Clause
// What a poll that found nothing does before it returns. Any thread, no lock held.
#pragma once

#include <atomic>

#include "core/sync/pause.hpp"
#include "core/sync/spin.hpp"

namespace viaduct::vipl {

inline std::atomic<const void*> last_polled_in_vain{nullptr};

// One pause between two looks at the same queue: looking without a break takes the line away from its writer
// again and again (performance-facts, "What makes the fast ones fast" 4). A program that looks at many queues
// in turn needs none. Where others want this processor it is given to them at once: programs poll without
// ever yielding (vipl-compat T16). True: somebody else may have run; look once more.
inline bool pause_between_looks(const void* queue) {
    if (crowd_hint.load(std::memory_order_relaxed)) [[unlikely]] {
        give_way();
        return true;
    }
    if (last_polled_in_vain.load(std::memory_order_relaxed) == queue) {
        cpu_pause();
    } else {
        last_polled_in_vain.store(queue, std::memory_order_relaxed);
    }
    return false;
}

}  // namespace viaduct::vipl
