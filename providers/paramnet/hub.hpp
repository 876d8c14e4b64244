// SPDX-License-Identifier: BSD-2-Clause
// Ringing the doorbells of a NIC context, ours or a peer's. Any thread, any locks; a system call only when a thread
// sleeps.
#pragma once

#include <climits>

#include "core/sync/futex.hpp"
#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

// What a ring needs of a context: the words that all its peers write, and those that only its owner does.
struct HubView {
    Hub* hub = nullptr;
    const OwnerPage* owner = nullptr;
};

// Wakes all threads that sleep on the hub.
inline void wake_sleepers(const HubView& view) {
    view.hub->rings.fetch_add(1, std::memory_order_seq_cst);
    if (view.owner->sleepers.load(std::memory_order_seq_cst) != 0) futex_wake(view.hub->rings, INT_MAX, true);
}

inline void wake_service(const HubView& view) {
    view.hub->service_rings.fetch_add(1, std::memory_order_seq_cst);
    if (view.owner->service_asleep.load(std::memory_order_seq_cst) != 0)
        futex_wake(view.hub->service_rings, INT_MAX, true);
}

// The VI in that slot of a peer has something for its pollers and sleepers. `own`: our end of the connection. What
// has been rung for and not been looked at yet needs no second ring.
inline void ring(const HubView& peer, EndRecord& own, uint32_t slot) {
    if (own.rung.exchange(1, std::memory_order_seq_cst) != 0) return;
    peer.hub->doorbells[slot / 64].fetch_or(uint64_t{1} << (slot % 64), std::memory_order_relaxed);
    wake_sleepers(peer);
}

// The VI in that slot of a peer needs its progress thread.
inline void call(const HubView& peer, EndRecord& own, uint32_t slot) {
    if (own.called.exchange(1, std::memory_order_seq_cst) != 0) return;
    peer.hub->services[slot / 64].fetch_or(uint64_t{1} << (slot % 64), std::memory_order_relaxed);
    wake_service(peer);
}

// Takes back what the other end has marked; true when it had.
inline bool take_mark(std::atomic<uint32_t>& mark) {
    return mark.load(std::memory_order_relaxed) != 0 && mark.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace viaduct::paramnet
