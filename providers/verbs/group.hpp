// SPDX-License-Identifier: BSD-2-Clause
// The endpoints whose completions one CQ (or the rest of a NIC) waits for share one completion queue of the
// device (as many as it takes, where those of the device are small), so that the cost of a poll does not grow
// with idle VIs. The polling thread sorts completions by endpoint.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/sync/biased_lock.hpp"
#include "providers/verbs/mapping.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

namespace verbs {

inline constexpr uint32_t kReadyWords = kMaxVi / 64;

struct DeviceQueue {
    Group* group = nullptr;
    ibv_cq* cq = nullptr;
    uint32_t entries = 0;         // what it can hold
    uint32_t wanted = 0;          // what its endpoints may need at once
    uint32_t unacknowledged = 0;  // events taken; under NicContext::groups_mutex
};

}  // namespace verbs

struct Group {
    static constexpr uint32_t kMaxQueues = 64;

    NicContext* nic = nullptr;
    BiasedLock lock;     // of poll_group; outside of VI locks
    BiasedLock cq_lock;  // of the device's queues and of the writing ends of Arrivals; inside of VI locks
    std::unique_ptr<verbs::DeviceQueue> queues[kMaxQueues];  // under cq_lock
    uint32_t count = 0;                                      // under cq_lock
    std::atomic<uint32_t> armed{0};
    uint64_t ready[verbs::kReadyWords] = {};  // slots with arrivals; under cq_lock
    std::atomic<uint32_t> any_ready{0};       // written under cq_lock
    std::atomic<uint32_t> looks{0};           // how many times its queues have been polled

    // Progress thread (queue_watch.cpp).
    uint32_t looks_seen = 0;
    int64_t watch_at = 0;
};

}  // namespace viaduct

namespace viaduct::verbs {

Status group_create(NicContext*, Group** out);
void group_destroy(Group*);
void poll_group(Group*);

// Takes completions off the device and hands them to their endpoints. Any VI locks may be held. True when
// there were any.
bool collect(Group&);
// A queue with room for so many completions more; null when the device has none.
DeviceQueue* reserve(Group&, uint32_t entries);
void give_back(DeviceQueue&, uint32_t entries);
// The next completion is an event of the channel.
void arm(Group&);

}  // namespace viaduct::verbs
