// SPDX-License-Identifier: BSD-2-Clause
// The endpoints whose completions one CQ (or the rest of a NIC) waits for share one completion queue of the
// device, so that the cost of a poll does not grow with idle VIs. Whoever polls sorts what it finds by
// endpoint.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "core/sync/biased_lock.hpp"
#include "providers/verbs/mapping.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct Group {
    NicContext* nic = nullptr;
    BiasedLock lock;     // of poll_group; outside of VI locks
    BiasedLock cq_lock;  // of the completion queue and of the writing ends of Arrivals; inside of VI locks
    ibv_cq* cq = nullptr;
    uint32_t entries = 0;  // under cq_lock: what the queue can hold
    uint32_t wanted = 0;   // under cq_lock: what its endpoints may need at once
    std::atomic<uint32_t> armed{0};
    uint32_t unacknowledged = 0;                           // events taken; under NicContext::groups_mutex
    std::atomic<uint64_t> ready[verbs::kMaxVi / 64] = {};  // slots with arrivals
    std::atomic<uint32_t> any_ready{0};
};

}  // namespace viaduct

namespace viaduct::verbs {

Status group_create(NicContext*, Group** out);
void group_destroy(Group*);
void poll_group(Group*);

// Takes completions off the device and hands them to their endpoints. Any VI locks may be held. True when
// there were any.
bool collect(Group&);
// Room for an endpoint's work requests; false when the device's queue cannot grow.
bool reserve(Group&, uint32_t entries);
void give_back(Group&, uint32_t entries);
// The next completion is an event of the channel.
void arm(Group&);

}  // namespace viaduct::verbs
