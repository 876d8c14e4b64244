// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/cq.hpp"

#include <algorithm>

#include "vipl/destroy.hpp"
#include "vipl/poll_backoff.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

namespace {

VIP_RETURN check_entries(const Nic& nic, VIP_ULONG entries) {
    if (entries == 0)
        return refuse(VIP_INVALID_PARAMETER, "ask for as many as descriptors may complete", "EntryCount is 0");
    if (entries > nic.info.max_cq_entries)
        return refuse(VIP_ERROR_RESOURCE, "use several completion queues",
                      "EntryCount is %lu; MaxCQEntries of NIC %s is %llu", entries, nic.info.name,
                      static_cast<unsigned long long>(nic.info.max_cq_entries));
    return VIP_SUCCESS;
}

VIP_RETURN refuse_one_more(const Nic& nic) {
    return refuse(VIP_ERROR_RESOURCE, "look at ulimit -n and ulimit -v",
                  "no memory, handle or queue of NIC %s left for one more completion queue", nic.info.name);
}

}  // namespace

VIP_RETURN create_cq(Nic& nic, VIP_ULONG entries, VIP_CQ_HANDLE* out) {
    if (const VIP_RETURN bad = check_entries(nic, entries); bad != VIP_SUCCESS) return bad;
    const std::lock_guard lock(nic.mutex);
    if (nic.cqs.size() >= nic.info.max_cq)
        return refuse(VIP_ERROR_RESOURCE, "destroy completion queues that are not used",
                      "NIC %s has %zu completion queues already; MaxCQ is %llu", nic.info.name, nic.cqs.size(),
                      static_cast<unsigned long long>(nic.info.max_cq));
    nic.cqs.reserve(nic.cqs.size() + 1);  // memory runs short before anything has changed
    if (!nic.leases.use(kagent::kLeaseCqs, 1)) return refuse_quota("completion queues", "agent.max_cqs");
    Cq* cq = nic.library->cqs.take();
    if (cq == nullptr || !cq->target.ring.allocate(static_cast<uint32_t>(entries)) ||
        !add_group(nic, cq->poll)) {
        if (cq != nullptr) nic.library->cqs.give_back(cq);
        nic.leases.give_back(kagent::kLeaseCqs, 1);
        return refuse_one_more(nic);
    }
    const uintptr_t handle = handle_table.insert(HandleKind::cq, cq);
    if (handle == 0) {
        remove_group(nic, cq->poll);
        nic.library->cqs.give_back(cq);
        nic.leases.give_back(kagent::kLeaseCqs, 1);
        return refuse_one_more(nic);
    }
    cq->target.sleepers.store(0);
    cq->ops = nic.ops;
    cq->nic = &nic;
    cq->empty_polls = 0;
    cq->told_timeout_at = 0;
    cq->queues = 0;
    nic.cqs.push_back(cq);
    cq->handle.store(handle);
    *out = reinterpret_cast<VIP_CQ_HANDLE>(handle);
    return VIP_SUCCESS;
}

void kill_cq(Cq& cq) {
    cq.poll.lock.lock();
    const uintptr_t handle = cq.handle.exchange(0);
    cq.poll.lock.unlock();
    handle_table.remove(reinterpret_cast<void*>(handle));
}

void release_cq(Cq& cq) {
    Nic& nic = *cq.nic;
    nic.dispatcher->disarm_cq(cq);
    remove_group(nic, cq.poll);
    nic.library->cqs.give_back(&cq);
}

namespace {

VIP_RETURN destroy_pinned(Nic& nic, Cq& cq, VIP_CQ_HANDLE handle) {
    {
        const std::lock_guard lock(nic.mutex);
        if (!cq.is(handle)) return refuse_cq(handle);
        if (cq.queues != 0)
            return refuse(VIP_ERROR_RESOURCE, "destroy the VIs first",
                          "%u work queues of VIs are attached to the completion queue", cq.queues.load());
        nic.cqs.erase(std::find(nic.cqs.begin(), nic.cqs.end(), &cq));
        kill_cq(cq);
    }
    nic.ops->wake(nic.context);  // waiters find out that it is destroyed
    release_cq(cq);
    nic.leases.give_back(kagent::kLeaseCqs, 1);
    return VIP_SUCCESS;
}

}  // namespace

VIP_RETURN destroy_cq(Cq& cq, VIP_CQ_HANDLE handle) {
    return destroy_after_handler(cq, handle, destroy_pinned, refuse_cq);
}

namespace {

// A completion that has arrived and was not fetched counts: in a smaller queue it would find no room. More than
// `enough` need not be known. cq.poll.lock held; one poll does a bounded amount of work.
void collect(Cq& cq, VIP_ULONG enough) {
    for (uint32_t before = 0; before <= enough;) {
        before = cq.target.ring.size();
        if (before > enough) return;
        cq.ops->poll_group(cq.poll.group);
        if (cq.target.ring.size() == before) return;
    }
}

}  // namespace

VIP_RETURN resize_cq(Cq& cq, VIP_CQ_HANDLE handle, VIP_ULONG entries) {
    const NicPin pin(cq.nic, cq.handle, handle);
    if (!pin) return refuse_cq(handle);
    if (const VIP_RETURN bad = check_entries(*pin, entries); bad != VIP_SUCCESS) return bad;
    cq.poll.lock.lock();
    const bool alive = cq.is(handle);
    if (alive && entries < cq.target.ring.capacity()) collect(cq, entries);
    const uint32_t waiting = alive ? cq.target.ring.size() : 0;
    const bool done = alive && cq.target.ring.resize(static_cast<uint32_t>(entries));
    cq.poll.lock.unlock();
    if (!alive) return refuse_cq(handle);
    if (done) return VIP_SUCCESS;
    return refuse(VIP_ERROR_RESOURCE, "take them with VipCQDone first, or ask for more entries",
                  "%u entries wait in the completion queue, and %lu were asked for", waiting, entries);
}

namespace {

// An entry as the program sees it; false when its VI has died since it was taken out of the ring.
bool present(const WorkQueue* queue, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue) {
    VIP_VI_HANDLE handle = Vi::of(*queue->vi).public_handle();
    if (handle == nullptr) return false;
    *vi = handle;
    *recv_queue = queue->is_receive ? VIP_TRUE : VIP_FALSE;
    return true;
}

constexpr uint32_t kEmptyPollsBetweenRounds = 64;

// Every so often an empty poll looks at the rest of the NIC: a process that waits for its sends still has to
// take what the others send (docs/data-path.md).
[[gnu::noinline]] void look_around(Cq& cq, VIP_CQ_HANDLE handle) {
    const NicPin pin(cq.nic, cq.handle, handle);
    if (pin) poll_idle(*pin);
}

// One look: the oldest entry or none, and whether it is time to look around. False: the handle is dead.
bool look(Cq& cq, VIP_CQ_HANDLE handle, WorkQueue** queue, bool* around) {
    const BiasedLockGuard held(cq.poll.lock);
    if (!cq.is(handle)) [[unlikely]]
        return false;
    *queue = cq.target.ring.pop();
    if (*queue == nullptr) {
        cq.ops->poll_group(cq.poll.group);
        *queue = cq.target.ring.pop();
    }
    cq.empty_polls = *queue == nullptr ? cq.empty_polls + 1 : 0;
    *around = *queue == nullptr && cq.empty_polls % kEmptyPollsBetweenRounds == 0;
    return true;
}

[[gnu::noinline]] VIP_RETURN cq_take_in_general(Cq& cq, VIP_CQ_HANDLE handle, VIP_VI_HANDLE* vi,
                                                VIP_BOOLEAN* recv_queue) {
    bool around = false;
    WorkQueue* queue = nullptr;
    if (!look(cq, handle, &queue, &around)) return fail_handle("VipCQDone", "CQHandle", handle, HandleKind::cq);
    // Either look may be the one after which it is time: of a program that gets two each time, always the second.
    if (queue == nullptr && !around && backoff_after_poll(*cq.nic, &cq)) {
        if (!look(cq, handle, &queue, &around)) return fail_handle("VipCQDone", "CQHandle", handle, HandleKind::cq);
    }
    if (queue == nullptr && around) look_around(cq, handle);
    if (queue == nullptr) return VIP_NOT_DONE;
    // Never a dead handle with SUCCESS (spec/compat Q8).
    return present(queue, vi, recv_queue) ? VIP_SUCCESS : VIP_NOT_DONE;
}

}  // namespace

// The fast path of a program with one thread; everything else takes the slow path.
VIP_RETURN cq_take(Cq& cq, VIP_CQ_HANDLE handle, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue) {
    if (!cq.poll.lock.try_enter()) [[unlikely]]
        return cq_take_in_general(cq, handle, vi, recv_queue);
    const bool alive = cq.is(handle);
    if (alive && cq.target.ring.empty()) cq.ops->poll_group(cq.poll.group);
    const WorkQueue* queue = alive ? cq.target.ring.pop() : nullptr;
    if (queue != nullptr) {
        cq.empty_polls = 0;
        cq.poll.lock.leave();
        return present(queue, vi, recv_queue) ? VIP_SUCCESS : VIP_NOT_DONE;
    }
    const bool around = (cq.empty_polls + 1) % kEmptyPollsBetweenRounds == 0;
    if (!alive || around || must_give_way(*cq.nic)) [[unlikely]] {
        cq.poll.lock.leave();
        return cq_take_in_general(cq, handle, vi, recv_queue);
    }
    ++cq.empty_polls;
    cq.poll.lock.leave();
    pause_if_polled_again(&cq);
    return VIP_NOT_DONE;
}

}  // namespace viaduct::vipl
