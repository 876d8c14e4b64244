// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/group.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <new>

#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr int kBatch = 16;
constexpr int kBatchesPerPoll = 8;
constexpr uint32_t kFirstEntries = 64;
constexpr uint32_t kBroken = 32;  // broken VIs one poll can settle

// cq_lock held.
void mark_ready(Group& group, uint32_t slot) {
    group.ready[slot / 64] |= uint64_t{1} << (slot % 64);
    group.any_ready.store(1, std::memory_order_relaxed);
}

// Moves the marks to `out`. False: there are none. Called behind collect(), whose lock shows what others
// marked.
bool take_ready(Group& group, uint64_t (&out)[kReadyWords]) {
    if (group.any_ready.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(group.cq_lock);
    group.any_ready.store(0, std::memory_order_relaxed);
    std::copy_n(group.ready, kReadyWords, out);
    std::fill_n(group.ready, kReadyWords, 0);
    return true;
}

// cq_lock held.
void sort_in(Group& group, const ibv_wc& wc) {
    const uint32_t slot = slot_of(wc.wr_id);
    Endpoint* ep = slot < kMaxVi ? group.nic->slots[slot].load(std::memory_order_acquire) : nullptr;
    if (ep == nullptr) return;  // of a VI that is destroyed
    Arrival a;
    a.position = position_of(wc.wr_id);
    a.generation = generation_of(wc.wr_id);
    a.status = static_cast<uint16_t>(wc.status);
    if (wc.status == IBV_WC_SUCCESS) {  // else nothing more is valid (spec/verbs e.2 row 2)
        a.length = wc.byte_len;
        a.immediate = wc.imm_data;
        a.opcode = static_cast<uint16_t>(wc.opcode);
        a.flags = static_cast<uint32_t>(wc.wc_flags);
    }
    Arrivals& queue = is_receive(wc.wr_id) ? ep->recv_arrivals : ep->send_arrivals;
    if (!queue.push(a)) {
        // Only left-overs of connections of the past can fill it: they have no use any more.
        VIADUCT_LOG(warn, "verbs", "completion of VI slot %u dropped", slot);
        return;
    }
    mark_ready(group, slot);
}

// Group lock held, no VI lock.
void serve(Group& group, uint32_t slot, ViCore** broken, uint32_t* count) {
    Endpoint* ep = group.nic->slots[slot].load(std::memory_order_acquire);
    if (ep == nullptr) return;  // endpoint_destroy waits for the group's lock
    ViCore& vi = *ep->vi;
    if (ep->recv_group == &group && !ep->recv_arrivals.empty()) {
        vi.recv.lock.lock();
        drain_receives(*ep);
        vi.recv.lock.unlock();
    }
    if (ep->send_group == &group && !ep->send_arrivals.empty()) {
        vi.send.lock.lock();
        drain_sends(*ep);
        push_sends(*ep);
        vi.send.lock.unlock();
    }
    if (vi.is_marked_broken()) broken[(*count)++] = &vi;
}

// One more queue of the device. cq_lock held, or no other thread has the group.
DeviceQueue* add_queue(Group& group, uint32_t entries) {
    if (group.count == Group::kMaxQueues || entries > group.nic->most_entries) return nullptr;
    std::unique_ptr<DeviceQueue> queue(new (std::nothrow) DeviceQueue);
    if (!queue) return nullptr;
    queue->group = &group;
    queue->cq =
        ops->create_cq(group.nic->device, static_cast<int>(entries), queue.get(), group.nic->channel, 0);
    if (queue->cq == nullptr) return nullptr;
    queue->entries = static_cast<uint32_t>(queue->cq->cqe);
    if (group.armed.load() != 0) ibv_req_notify_cq(queue->cq, 0);  // a thread sleeps on the others
    group.queues[group.count] = std::move(queue);
    return group.queues[group.count++].get();
}

// Whether a queue has room, or can be made to have it. cq_lock held.
bool has_room(const Group& group, DeviceQueue& queue, uint32_t entries) {
    const uint32_t wanted = queue.wanted + entries;
    if (wanted <= queue.entries) return true;
    if (wanted > group.nic->most_entries) return false;
    const uint32_t target = std::min(std::max(wanted, 2 * queue.entries), group.nic->most_entries);
    if (ops->resize_cq(queue.cq, static_cast<int>(target)) != 0) return false;
    queue.entries = static_cast<uint32_t>(queue.cq->cqe);
    return wanted <= queue.entries;
}

}  // namespace

bool collect(Group& group) {
    ibv_wc completions[kBatch];
    bool any = false;
    group.cq_lock.lock();
    group.looks.store(group.looks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    for (uint32_t q = 0; q < group.count; ++q) {
        const int n = ibv_poll_cq(group.queues[q]->cq, kBatch, completions);
        for (int i = 0; i < n; ++i) sort_in(group, completions[i]);
        any |= n > 0;
    }
    group.cq_lock.unlock();
    return any;
}

void poll_group(Group* group) {
    const CancellationHeldOff inside_hot_calls;
    ViCore* broken[kBroken];
    uint32_t count = 0;
    group->lock.lock();
    for (int batch = 0; batch < kBatchesPerPoll && collect(*group); ++batch) {
    }
    uint64_t ready[kReadyWords];
    if (take_ready(*group, ready)) {
        for (uint32_t word = 0; word < kReadyWords; ++word) {
            for (uint64_t bits = ready[word]; bits != 0; bits &= bits - 1) {
                const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
                if (count == kBroken) {
                    const std::lock_guard lock(group->cq_lock);
                    mark_ready(*group, slot);  // next time
                } else {
                    serve(*group, slot, broken, &count);
                }
            }
        }
    }
    group->lock.unlock();
    for (uint32_t i = 0; i < count; ++i) broken[i]->events->settle(*broken[i]);
}

Status group_create(NicContext* nic, Group** out) {
    std::unique_ptr<Group> group(new (std::nothrow) Group);
    if (!group) return Status::out_of_resources;
    group->nic = nic;
    if (add_queue(*group, kFirstEntries) == nullptr) return Status::out_of_resources;
    const std::lock_guard lock(nic->groups_mutex);
    nic->groups.push_back(group.get());
    *out = group.release();
    return Status::ok;
}

void group_destroy(Group* group) {
    if (group == nullptr) return;
    NicContext& nic = *group->nic;
    drain_channel(nic);  // events that are not taken would keep the queue alive
    {
        // Until it is removed: an event that another thread took meanwhile never comes here.
        const std::lock_guard lock(nic.groups_mutex);
        nic.groups.erase(std::find(nic.groups.begin(), nic.groups.end(), group));
        for (uint32_t i = 0; i < group->count; ++i) {
            const DeviceQueue& q = *group->queues[i];
            if (q.unacknowledged != 0) ops->ack_cq_events(q.cq, q.unacknowledged);
            if (ops->destroy_cq(q.cq) != 0) VIADUCT_LOG(warn, "verbs", "a completion queue stays behind");
        }
    }
    wake(&nic);  // those of other groups were meant for a thread that sleeps, or is about to
    delete group;
}

DeviceQueue* reserve(Group& group, uint32_t entries) {
    const std::lock_guard lock(group.cq_lock);
    DeviceQueue* found = nullptr;
    for (uint32_t i = 0; i < group.count && found == nullptr; ++i)
        if (has_room(group, *group.queues[i], entries)) found = group.queues[i].get();
    if (found == nullptr) found = add_queue(group, std::max(entries, kFirstEntries));
    if (found == nullptr) {
        VIADUCT_LOG(warn, "verbs", "the device has no room for %u completions more", entries);
        return nullptr;
    }
    found->wanted += entries;
    return found;
}

void give_back(DeviceQueue& queue, uint32_t entries) {
    const std::lock_guard lock(queue.group->cq_lock);
    queue.wanted -= entries;
}

void arm(Group& group) {
    const std::lock_guard lock(group.cq_lock);  // a thread that finds it armed may rely on that: it was done
    if (group.armed.exchange(1) != 0) return;
    for (uint32_t i = 0; i < group.count; ++i) ibv_req_notify_cq(group.queues[i]->cq, 0);
}

}  // namespace viaduct::verbs
