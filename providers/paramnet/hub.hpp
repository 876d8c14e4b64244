// SPDX-License-Identifier: BSD-2-Clause
// Ringing the bells of a hub, ours or a peer's. Any thread, any locks; a system call only when somebody
// sleeps.
#pragma once

#include <climits>

#include "core/sync/futex.hpp"
#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

// Wakes everybody who sleeps on the hub.
inline void wake_sleepers(Hub& hub) {
    hub.rings.fetch_add(1, std::memory_order_seq_cst);
    if (hub.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake(hub.rings, INT_MAX, true);
}

// The VI in that slot has something for whoever polls or sleeps. A bit that is set already has been rung for
// and not been looked at yet: nothing more to do.
inline void ring(Hub& hub, uint32_t slot) {
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if ((hub.bells[slot / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) == 0) wake_sleepers(hub);
}

inline void wake_service(Hub& hub) {
    hub.service_rings.fetch_add(1, std::memory_order_seq_cst);
    if (hub.service_asleep.load(std::memory_order_seq_cst) != 0) futex_wake(hub.service_rings, INT_MAX, true);
}

// The VI in that slot needs the progress thread.
inline void call(Hub& hub, uint32_t slot) {
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if ((hub.services[slot / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) == 0) wake_service(hub);
}

}  // namespace viaduct::paramnet
