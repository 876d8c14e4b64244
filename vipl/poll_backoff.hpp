// SPDX-License-Identifier: BSD-2-Clause
// Poll backoff: what a poll that found nothing does before it returns. Any thread, no lock held.
#pragma once

#include <atomic>

#include "core/sync/atomic_equals.hpp"
#include "core/sync/pause.hpp"
#include "core/wait/crowd_score.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

inline std::atomic<const void*> last_empty_poll{nullptr};

// Other threads need this processor, and polls of this NIC are to give it to them (VipxSetGiveWay).
inline bool must_give_way(const Nic& nic) {
    return crowd_hint.load(std::memory_order_relaxed) && nic.gives_way.load(std::memory_order_relaxed);
}

// One pause between two polls of the same queue: polling without a pause takes the cache line from its writer
// again and again (spec/performance R4). A program that polls many queues in turn needs none.
inline void pause_if_polled_again(const void* queue) {
    if (atomic_equals(last_empty_poll, queue)) {
        cpu_pause();
    } else {
        last_empty_poll.store(queue, std::memory_order_relaxed);
    }
}

// The same; but where other threads need this processor it yields at once, because programs poll without ever
// yielding (spec/compat T16). True: another thread may have run; poll once more.
inline bool backoff_after_poll(const Nic& nic, const void* queue) {
    if (must_give_way(nic)) [[unlikely]] {
        give_way();
        return true;
    }
    pause_if_polled_again(queue);
    return false;
}

}  // namespace viaduct::vipl
