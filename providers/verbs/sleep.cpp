// SPDX-License-Identifier: BSD-2-Clause
// Sleeping on a NIC. Of the threads that sleep, one is the leader and polls the completion channel; the others sleep on
// the futex NicContext::wakes, which the leader wakes. So a completion wakes the program's threads without help of a
// library thread. Called by any thread; sleep_begin and drain_channel take groups_mutex.
#include <poll.h>
#include <unistd.h>

#include <climits>

#include "core/clock/clock.hpp"
#include "core/sync/futex.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr unsigned kAckAtOnce = 64;  // events; ibv_ack_cq_events takes a lock of libibverbs

void wake_sleepers(NicContext& nic) {
    nic.wakes.fetch_add(1);
    if (nic.sleepers.load() != 0) futex_wake(nic.wakes, INT_MAX, false);
}

// The leader's sleep: until the channel or the wake event is readable, or the deadline.
void lead(NicContext& nic, uint32_t key, Deadline deadline) {
    if (nic.wakes.load() == key) {
        pollfd fds[2] = {{nic.channel->fd, POLLIN, 0}, {nic.wake_event.fd(), POLLIN, 0}};
        const int64_t left = remaining_ns(deadline);
        const timespec limit = timespec_of(left);
        ::ppoll(fds, 2, left < 0 ? nullptr : &limit, nullptr);
    }
    nic.wake_event.clear();
    drain_channel(nic);
    nic.leader.store(0);
    wake_sleepers(nic);  // the others poll their queues too, and the next one that sleeps leads
}

}  // namespace

uint32_t sleep_begin(NicContext* nic) {
    nic->sleepers.fetch_add(1);
    const uint32_t key = nic->wakes.load();
    const std::lock_guard lock(nic->groups_mutex);
    for (Group* group : nic->groups) arm(*group);
    return key;
}

void sleep_wait(NicContext* nic, uint32_t key, Deadline deadline) {
    if (nic->leader.exchange(1) == 0) {
        lead(*nic, key, deadline);
    } else {
        futex_wait(nic->wakes, key, remaining_ns(deadline), false);
    }
}

void sleep_end(NicContext* nic) { nic->sleepers.fetch_sub(1); }

void wake(NicContext* nic) {
    wake_sleepers(*nic);
    if (nic->leader.load() == 0) return;
    nic->wake_event.signal();
}

void drain_channel(NicContext& nic) {
    const std::lock_guard lock(nic.groups_mutex);
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    while (ops->get_cq_event(nic.channel, &cq, &user) == 0) {
        auto* queue = static_cast<DeviceQueue*>(user);
        queue->group->armed.store(0);
        if (++queue->unacknowledged >= kAckAtOnce) {
            ops->ack_cq_events(cq, queue->unacknowledged);
            queue->unacknowledged = 0;
        }
    }
}

}  // namespace viaduct::verbs
