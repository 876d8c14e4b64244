// SPDX-License-Identifier: BSD-2-Clause
// What a poll that found nothing does before it returns. Any thread, no lock held.
#pragma once

#include <atomic>

#include "core/sync/holds.hpp"
#include "core/sync/pause.hpp"
#include "core/wait/crowd_score.hpp"

namespace viaduct::vipl {

inline std::atomic<const void*> last_polled_in_vain{nullptr};

inline bool must_give_way() { return crowd_hint.load(std::memory_order_relaxed); }

// One pause between two looks at the same queue: looking without a break takes the line away from its writer
// again and again (spec/performance R4). A program that looks at many queues
// in turn needs none.
inline void pause_if_again(const void* queue) {
    if (holds(last_polled_in_vain, queue)) {
        cpu_pause();
    } else {
        last_polled_in_vain.store(queue, std::memory_order_relaxed);
    }
}

// The same; but where others want this processor it is given to them at once: programs poll without ever
// yielding (spec/compat T16). True: somebody else may have run; look once more.
inline bool pause_between_looks(const void* queue) {
    if (must_give_way()) [[unlikely]] {
        give_way();
        return true;
    }
    pause_if_again(queue);
    return false;
}

}  // namespace viaduct::vipl
