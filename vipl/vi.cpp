// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/vi.hpp"

#include <bit>
#include <exception>

#include "core/memory/mapped.hpp"
#include "core/text/code_names.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/destroy.hpp"
#include "vipl/memory.hpp"
#include "vipl/nic.hpp"
#include "vipl/stats.hpp"
#include "vipl/vi_state.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// spec/calls 4.2, in the order in which the errors are most useful to a program.
VIP_RETURN check_attributes(const NicInfo& info, const VIP_VI_ATTRIBUTES& a) {
    if (!std::has_single_bit(a.ReliabilityLevel) || (info.reliability_mask & a.ReliabilityLevel) == 0)
        return refuse(
            VIP_INVALID_RELIABILITY_LEVEL,
            "clear the attributes first and set one of VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, "
            "VIP_SERVICE_RELIABLE_RECEPTION",
            "ReliabilityLevel is %#x; NIC %s takes one bit of %#x", a.ReliabilityLevel, info.name,
            info.reliability_mask);
    if (a.MaxTransferSize == 0 || a.MaxTransferSize > info.max_transfer)
        return refuse(VIP_INVALID_MTU, "use MaxTransferSize of VipQueryNic or less",
                      "MaxTransferSize is %lu; NIC %s takes 1 to %llu", a.MaxTransferSize, info.name,
                      static_cast<unsigned long long>(info.max_transfer));
    if (a.QoS != nullptr)
        return refuse(VIP_INVALID_QOS, "clear the attributes before they are filled; no NIC has qualities of service",
                      "QoS is %p, it must be NULL", a.QoS);
    if (a.EnableRdmaRead && (info.rdma_read_mask & a.ReliabilityLevel) == 0)
        return refuse(VIP_INVALID_RDMAREAD,
                      "clear EnableRdmaRead, or use a reliable level; RDMAReadSupport of VipQueryNic",
                      "EnableRdmaRead is set; NIC %s has RDMA read at levels %#x, the VI has %#x", info.name,
                      info.rdma_read_mask, a.ReliabilityLevel);
    return VIP_SUCCESS;
}

// Both queue locks are held, or no other thread has the VI yet.
void apply_attributes(Vi& vi, const NicInfo& info, const VIP_VI_ATTRIBUTES& a, Ptag* tag) {
    vi.attributes = a;
    vi.ptag = tag;
    ViCore& core = vi.core;
    core.traits.reliability = a.ReliabilityLevel;
    core.traits.max_transfer = a.MaxTransferSize;
    core.traits.qos = 0;
    core.traits.rdma_write = a.EnableRdmaWrite ? 1 : 0;
    core.traits.rdma_read = a.EnableRdmaRead ? 1 : 0;
    core.ptag = tag != nullptr ? tag->id : 0;
    core.recv.clear_regions();
    core.send.clear_regions();
    core.max_transfer = a.MaxTransferSize;
    core.max_segments = static_cast<uint32_t>(info.max_segments);
    // Whether this end may be read is in the traits; initiating needs only the level (spec/reliability 7).
    core.rdma_read_allowed = (info.rdma_read_mask & a.ReliabilityLevel) != 0 ? 1 : 0;
    core.atomic_widths = a.ReliabilityLevel != VIP_SERVICE_UNRELIABLE ? atomic_widths(info) : 0;
}

// A tag of this NIC, NULL being one (spec/compat V1). Nic::mutex held.
bool tag_of(Nic& nic, VIP_PROTECTION_HANDLE handle, Ptag** tag) {
    *tag = nullptr;
    if (handle == nullptr) return true;
    *tag = find_ptag(nic, handle);
    return *tag != nullptr;
}

bool cq_of(Nic& nic, VIP_CQ_HANDLE handle, Cq** cq) {
    *cq = nullptr;
    if (handle == nullptr) return true;
    *cq = find_cq(handle);
    return *cq != nullptr && (*cq)->nic == &nic && (*cq)->is(handle);
}

VIP_RETURN refuse_cq_of(const Nic& nic, const char* argument, VIP_CQ_HANDLE handle) {
    if (find_cq(handle) != nullptr)
        return refuse(VIP_INVALID_PARAMETER, "create it on the same NIC handle as the VI",
                      "%s %p belongs to another NIC handle than that of %s", argument, handle, nic.info.name);
    return refuse_handle(argument, handle, HandleKind::cq);
}

// Memory runs short before anything has changed. Giving a slot back needs none: `free_slots` has room for all.
uint32_t take_slot(Nic& nic, Vi* vi) {
    if (nic.free_slots.empty()) {
        nic.free_slots.reserve(nic.vis.size() + 1);
        nic.vis.push_back(nullptr);
        nic.free_slots.push_back(static_cast<uint32_t>(nic.vis.size() - 1));
    }
    const uint32_t slot = nic.free_slots.back();
    nic.free_slots.pop_back();
    nic.vis[slot] = vi;
    ++nic.vi_count;
    return slot;
}

void give_slot_back(Nic& nic, uint32_t slot) {
    nic.vis[slot] = nullptr;
    nic.free_slots.push_back(slot);
    --nic.vi_count;
}

void prepare_queue(Vi& vi, WorkQueue& q, Cq* cq, bool is_receive) {
    q.cq = cq != nullptr ? &cq->target : nullptr;
    q.sleepers.store(0);
    q.vi = &vi.core;
    q.is_receive = is_receive;
    QueueSide& side = vi.side_of(q);
    side.empty_polls = 0;
    side.waiting = false;
    side.told_empty = false;
    side.told_timeout_at = 0;
}

// Associations with tag and queues; Nic::mutex held.
void count_uses(Vi& vi, int by) {
    if (vi.ptag != nullptr) vi.ptag->vis += static_cast<uint32_t>(by);
    if (vi.send_cq != nullptr) vi.send_cq->queues += static_cast<uint32_t>(by);
    if (vi.recv_cq != nullptr) vi.recv_cq->queues += static_cast<uint32_t>(by);
}

// Everything but the handle. Nic::mutex held.
VIP_RETURN build_vi(Nic& nic, Vi& vi, const VIP_VI_ATTRIBUTES& a, Ptag* tag, Cq* send_cq, Cq* recv_cq) {
    // A thread with a handle that died long ago may still look at this object: what it reads is under the
    // locks.
    const BothQueues both(vi.core);
    const auto depth = std::bit_ceil(static_cast<uint32_t>(nic.info.max_descriptors_per_queue));
    if (!vi.core.recv.allocate(depth) || !vi.core.send.allocate(depth)) return VIP_ERROR_RESOURCE;
    vi.nic = &nic;
    vi.ops = nic.ops;
    vi.send_cq = send_cq;
    vi.recv_cq = recv_cq;
    vi.user_data.store(nullptr);
    vi.core.owner = &vi;
    vi.core.events = &vi_events;
    vi.core.regions = nic.regions.get();
    vi.core.strict_receives = nic.library->policy.receives_in_their_regions;
    vi.set_state(VIP_STATE_IDLE);
    vi.core.broken.store(0);
    prepare_queue(vi, vi.core.send, send_cq, false);
    prepare_queue(vi, vi.core.recv, recv_cq, true);
    apply_attributes(vi, nic.info, a, tag);
    return VIP_SUCCESS;
}

Status make_endpoint(Nic& nic, Vi& vi) {
    EndpointArgs args;
    args.vi = &vi.core;
    args.send_group = vi.send_cq != nullptr ? vi.send_cq->poll.group : nic.own_group.group;
    args.recv_group = vi.recv_cq != nullptr ? vi.recv_cq->poll.group : nic.own_group.group;
    return nic.ops->endpoint_create(nic.context, args, &vi.core.endpoint);
}

// Slot, endpoint and handle. 0: one of them is not to be had, and the VI has none. Nic::mutex held.
uintptr_t place_vi(Nic& nic, Vi& vi) {
    vi.core.slot = take_slot(nic, &vi);
    vi.core.endpoint = nullptr;
    uintptr_t handle = 0;
    try {
        if (make_endpoint(nic, vi) == Status::ok) {
            show_vi(vi);
            handle = handle_table.insert(HandleKind::vi, &vi);
        }
    } catch (const std::exception&) {
    }
    if (handle != 0) return handle;
    if (vi.core.endpoint != nullptr) nic.ops->endpoint_destroy(vi.core.endpoint);
    vi.core.endpoint = nullptr;
    give_slot_back(nic, vi.core.slot);
    return 0;
}

// A VI that is not shown to the program yet; 0: as above. Nic::mutex held.
uintptr_t make_vi(Nic& nic, Vi& vi, const VIP_VI_ATTRIBUTES& a, Ptag* tag, Cq* send_cq, Cq* recv_cq) try {
    if (build_vi(nic, vi, a, tag, send_cq, recv_cq) != VIP_SUCCESS) return 0;
    return place_vi(nic, vi);
} catch (const std::exception&) {
    return 0;
}

}  // namespace

VIP_RETURN create_vi(Nic& nic, const VIP_VI_ATTRIBUTES& attributes, VIP_CQ_HANDLE send_cq,
                     VIP_CQ_HANDLE recv_cq, VIP_VI_HANDLE* out) {
    const VIP_RETURN bad = check_attributes(nic.info, attributes);
    if (bad != VIP_SUCCESS) return bad;
    const std::lock_guard lock(nic.mutex);
    Ptag* tag;
    Cq* send;
    Cq* recv;
    if (!tag_of(nic, attributes.Ptag, &tag)) return refuse_ptag(attributes.Ptag, nic.info.name);
    if (!cq_of(nic, send_cq, &send)) return refuse_cq_of(nic, "SendCQHandle", send_cq);
    if (!cq_of(nic, recv_cq, &recv)) return refuse_cq_of(nic, "RecvCQHandle", recv_cq);
    if (nic.vi_count >= nic.info.max_vi)
        return refuse(VIP_ERROR_RESOURCE, "destroy VIs that are not used, or open the NIC once more",
                      "NIC %s has %u VIs already; MaxVI is %llu", nic.info.name, nic.vi_count,
                      static_cast<unsigned long long>(nic.info.max_vi));
    if (!nic.leases.use(kagent::kLeaseVis, 1)) return refuse_quota("VIs", "agent.max_vis");

    Vi* vi = nic.library->vis.take();
    const uintptr_t handle = vi != nullptr ? make_vi(nic, *vi, attributes, tag, send, recv) : 0;
    if (handle != 0) {
        count_uses(*vi, 1);
        vi->handle.store(handle);
        *out = reinterpret_cast<VIP_VI_HANDLE>(handle);
        return VIP_SUCCESS;
    }
    if (vi != nullptr) nic.library->vis.give_back(vi);
    nic.leases.give_back(kagent::kLeaseVis, 1);
    return refuse(VIP_ERROR_RESOURCE, "look at ulimit -n and ulimit -v",
                  "no memory, handle or queue of NIC %s left for one more VI", nic.info.name);
}

namespace {

// The state does not allow the call.
VIP_RETURN refuse_state(const Vi& vi, const char* wanted) {
    return refuse(VIP_INVALID_STATE, "VipDisconnect first", "the VI is %s, it must be %s", name_of_state(vi.state()),
                  wanted);
}

VIP_RETURN destroy_pinned(Nic& nic, Vi& vi, VIP_VI_HANDLE handle) {
    {
        const BothQueues both(vi.core);
        if (!vi.is(handle)) return refuse_vi(handle);
        if (!may_reshape(vi.state())) return refuse_state(vi, "Idle");
        const ViCore& core = vi.core;
        // Completions that were not fetched are dropped (spec/states 3); whatever is not complete is still the
        // program's promise.
        if (core.recv.completed != core.recv.posted || core.send.completed != core.send.posted)
            return refuse(VIP_ERROR_RESOURCE, "VipDisconnect completes them as flushed; take them with VipRecvDone",
                          "%u receives and %u sends are posted and not complete",
                          core.recv.posted - core.recv.completed, core.send.posted - core.send.completed);
        if (nic.library->policy.destroy_needs_empty_queues && !(core.recv.empty() && core.send.empty()))
            return refuse(VIP_ERROR_RESOURCE, "take them with VipRecvDone and VipSendDone, or clear vipl.strict",
                          "completions were not taken: %u of the receive queue, %u of the send queue (vipl.strict)",
                          core.recv.posted - core.recv.dequeued, core.send.posted - core.send.dequeued);
        vi.handle.store(0);
    }
    handle_table.remove(handle);
    nic.ops->wake(nic.context);
    release_vi(vi);
    nic.leases.give_back(kagent::kLeaseVis, 1);
    return VIP_SUCCESS;
}

}  // namespace

VIP_RETURN destroy_vi(Vi& vi, VIP_VI_HANDLE handle) {
    return destroy_after_handler(vi, handle, destroy_pinned, refuse_vi);
}

namespace {

// The memory behind a posted descriptor may be unmapped by now (spec/compat M11): whatever still completes on
// this queue completes here. Lock held.
void divert_completions(WorkQueue& q, VIP_DESCRIPTOR& nowhere) {
    for (uint32_t position = q.completed; position != q.posted; ++position)
        q.slots[position & q.mask] = reinterpret_cast<uintptr_t>(&nowhere);
}

}  // namespace

namespace {

// False: some of its descriptors are unmapped, or there are too many to check.
bool descriptors_are_there(const WorkQueue& q) {
    constexpr uint32_t kMostAskedAbout = 4096;
    if (q.posted - q.completed > kMostAskedAbout) return false;
    for (uint32_t position = q.completed; position != q.posted; ++position)
        if (!is_mapped(q.at(position), sizeof(VIP_DESCRIPTOR))) return false;
    return true;
}

}  // namespace

void finish_sends(Vi& vi, Deadline until) {
    {
        const BothQueues both(vi.core);
        const WorkQueue& sends = vi.core.send;
        if (vi.state() != VIP_STATE_CONNECTED || sends.completed == sends.posted) return;
        if (!descriptors_are_there(sends) || !descriptors_are_there(vi.core.recv)) return;
    }
    finish_traffic(vi, vi.handle.load(), until);
}

void kill_vi(Vi& vi) {
    vi.attempt.given_up.store(true);
    uintptr_t handle;
    {
        const BothQueues both(vi.core);
        handle = vi.handle.exchange(0);
        if (vi.state() == VIP_STATE_CONNECTED) {
            divert_completions(vi.core.recv, vi.nowhere);
            divert_completions(vi.core.send, vi.nowhere);
            vi.ops->disconnect(vi.core);
            vi.set_state(VIP_STATE_IDLE);
        }
    }
    handle_table.remove(reinterpret_cast<void*>(handle));
}

void release_vi(Vi& vi) {
    Nic& nic = *vi.nic;
    finish_left_attempt(vi);
    nic.dispatcher->disarm_vi(vi);
    nic.ops->endpoint_destroy(vi.core.endpoint);
    const std::lock_guard lock(nic.mutex);
    {
        const BothQueues both(vi.core);
        vi.core.endpoint = nullptr;
        vi.core.recv.clear();
        vi.core.send.clear();
    }
    // Entries that were not taken must not name a dead VI (spec/states 3, last rule).
    if (vi.send_cq != nullptr) vi.send_cq->target.ring.purge(&vi.core.send);
    if (vi.recv_cq != nullptr) vi.recv_cq->target.ring.purge(&vi.core.recv);
    count_uses(vi, -1);
    vi.life.fetch_add(1);
    give_slot_back(nic, vi.core.slot);
    nic.library->vis.give_back(&vi);
}

VIP_RETURN query_vi(Vi& vi, VIP_VI_HANDLE handle, VIP_VI_STATE* state, VIP_VI_ATTRIBUTES* attributes,
                    VIP_BOOLEAN* send_empty, VIP_BOOLEAN* recv_empty) {
    // The end of the peer shows without any other call (spec/compat Q12).
    vi.core.recv.lock.lock();
    if (vi.is(handle) && vi.state() == VIP_STATE_CONNECTED) vi.ops->poll_recv(vi.core);
    vi.core.recv.lock.unlock();
    settle_if_broken(vi);
    const BothQueues both(vi.core);
    if (!vi.is(handle)) return refuse_vi(handle);
    *state = vi.state();
    *attributes = vi.attributes;
    *send_empty = vi.core.send.empty() ? VIP_TRUE : VIP_FALSE;
    *recv_empty = vi.core.recv.empty() ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
}

VIP_RETURN set_vi_attributes(Vi& vi, VIP_VI_HANDLE handle, const VIP_VI_ATTRIBUTES& attributes) {
    const NicPin pin(vi.nic, vi.handle, handle);
    if (!pin) return refuse_vi(handle);
    Nic& nic = *pin;
    const std::lock_guard lock(nic.mutex);
    const BothQueues both(vi.core);
    if (!vi.is(handle)) return refuse_vi(handle);
    if (!may_reshape(vi.state())) return refuse_state(vi, "Idle");
    const VIP_RETURN bad = check_attributes(nic.info, attributes);
    if (bad != VIP_SUCCESS) return bad;
    Ptag* tag;
    if (!tag_of(nic, attributes.Ptag, &tag)) return refuse_ptag(attributes.Ptag, nic.info.name);
    count_uses(vi, -1);
    apply_attributes(vi, nic.info, attributes, tag);
    count_uses(vi, 1);
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
