// SPDX-License-Identifier: BSD-2-Clause
// The endpoints whose completions one CQ (or the rest of a NIC) waits for. A few busy ones are polled
// directly, the others ring: the cost of a poll does not grow with idle VIs.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/sync/biased_lock.hpp"
#include "providers/paramnet/segment_layout.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct Group {
    static constexpr uint32_t kHot = 8;

    struct HotEntry {
        Endpoint* endpoint = nullptr;
        uint32_t last_hit = 0;  // value of `polls` when it last had something
    };

    NicContext* nic = nullptr;
    BiasedLock lock;
    HotEntry hot[kHot];
    std::atomic<uint32_t> hot_count{0};  // changed under `lock`
    uint32_t polls = 0;
    // Slots that rang since the last poll. Set under NicContext::slots_lock, taken under `lock`.
    alignas(64) std::atomic<uint64_t> pending[paramnet::kDoorbellWords] = {};
    std::atomic<uint32_t> any_pending{0};
};

}  // namespace viaduct

namespace viaduct::paramnet {

Status group_create(NicContext*, Group** out);
void group_destroy(Group*);
void poll_group(Group*);

// The endpoint in that slot is looked at by the group's next poll.
void set_pending(Group*, uint32_t slot);
// Traffic was found on an endpoint that rings: polls it directly from now on if there is room among the hot
// ones. Called with a queue lock of the VI held: gives up rather than wait.
void try_promote(Endpoint&, Group*);
// Takes the endpoint out of its groups for good. No lock held.
void leave_groups(Endpoint&);
// Writes the modes that follow from recv_hot, send_hot and sleeping. slots_lock held.
void write_modes(NicContext&, Endpoint&);

}  // namespace viaduct::paramnet
