// SPDX-License-Identifier: BSD-2-Clause
// What a poll that found nothing does before it returns. Any thread, no lock held.
#pragma once

#include <atomic>

#include "core/sync/atomic_equals.hpp"
#include "core/sync/pause.hpp"
#include "core/wait/crowd_score.hpp"

namespace viaduct::vipl {

inline std::atomic<const void*> last_empty_poll{nullptr};

inline bool must_give_way() { return crowd_hint.load(std::memory_order_relaxed); }

// One pause between two looks at the same queue: looking without a break takes the line away from its writer
// again and again (spec/performance R4). A program that looks at many queues
// in turn needs none.
inline void pause_if_polled_again(const void* queue) {
    if (holds(last_empty_poll, queue)) {
        cpu_pause();
    } else {
        last_empty_poll.store(queue, std::memory_order_relaxed);
    }
}

// The same; but where others want this processor it is given to them at once: programs poll without ever
// yielding (spec/compat T16). True: somebody else may have run; look once more.
inline bool backoff_after_poll(const void* queue) {
    if (must_give_way()) [[unlikely]] {
        give_way();
        return true;
    }
    pause_if_polled_again(queue);
    return false;
}

}  // namespace viaduct::vipl
