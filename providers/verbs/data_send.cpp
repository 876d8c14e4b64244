// SPDX-License-Identifier: BSD-2-Clause
// The data path of sends and RDMA: work requests from descriptors, results of descriptors from completions (spec/verbs
// e.2). Run by any thread of the program and by the progress thread, with vi.send.lock held. Receives are in
// data_receive.cpp.
#include <arpa/inet.h>

#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/verbs/atomic.hpp"
#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/failed.hpp"
#include "providers/verbs/gather.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/queue_watch.hpp"
#include "providers/verbs/recover.hpp"

namespace viaduct::verbs {

namespace {

constexpr uint32_t kSignalEvery = 16;  // of sends in a row, one has a completion (spec/verbs e.2 row 22)

enum class Step : uint8_t { go, wait, refuse };

// RegionFlag bits that the target's region and VI need for an operation.
uint32_t target_flags(uint32_t operation) {
    switch (operation) {
        case VIP_CONTROL_OP_RDMAREAD:
            return kRegionRdmaRead;
        case VIP_CONTROL_OP_RDMAWRITE:
            return kRegionRdmaWrite;
        default:  // an atomic operation
            return kRegionRdmaRead | kRegionRdmaWrite;
    }
}

// The peer's key for an RDMA target (spec/verbs e.2 rows 3 and 4). It is requested once for each region, and the key
// is kept. wait: the answer is not here. refuse: the peer does not permit the access. `alone`: all earlier descriptors
// are complete. The key for a write with immediate data is requested only then: its refusal takes a receive of the
// peer, in order.
Step find_remote(Link& link, const VIP_DESCRIPTOR* d, uint32_t operation, uint64_t total, bool alone, uint32_t* key) {
    const VIP_ADDRESS_SEGMENT& remote = segments_of(d)->Remote;
    const uint32_t handle = remote.Handle;
    const uint64_t address = remote.Data.AddressBits;
    const uint32_t flags = target_flags(operation);
    if (const auto known = link.remote_keys.find(handle); known != link.remote_keys.end()) {
        const RemoteKey& k = known->second;
        if ((k.flags & flags) == flags && total <= k.length && address - k.base <= k.length - total) {
            *key = k.key;
            return Step::go;
        }
    }
    Question& q = link.question;
    if (!q.asked) {
        if (!alone && has_immediate(d)) return Step::wait;
        if (!ask_peer(link, handle, address, total, flags)) return Step::wait;
        q = Question{true, false, handle, {}};
        return Step::wait;
    }
    if (!q.answered) return Step::wait;
    const RemoteKey answer = q.answer;
    q = Question();
    if (answer.key == 0) return Step::refuse;
    link.remote_keys[handle] = answer;
    *key = answer.key;
    return Step::go;
}

ibv_wr_opcode opcode_of(uint32_t operation, bool immediate) {
    switch (operation) {
        case VIP_CONTROL_OP_RDMAREAD:
            return IBV_WR_RDMA_READ;
        case VIP_CONTROL_OP_RDMAWRITE:
            return immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        default:
            return immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    }
}

// Posts the descriptor at `position`, whose checks have passed, to the device. False: the device does not take it.
bool post_one(Endpoint& ep, Link& link, uint32_t position, uint32_t total, uint32_t key, bool signalled) {
    const VIP_DESCRIPTOR* d = ep.vi->send.at(position);
    const uint32_t operation = operation_of(d);
    ibv_sge list[kMostSegments];
    ibv_send_wr wr;  // not zeroed: only the members that the operation uses are set
    wr.next = nullptr;
    const bool rdma = operation != VIP_CONTROL_OP_SENDRECV;
    wr.wr_id = make_wr_id(ep.slot, link.generation, false, position);
    wr.sg_list = list;
    wr.num_sge = gather_list(*ep.nic, d, rdma ? 1 : 0, list);
    wr.opcode = opcode_of(operation, has_immediate(d));
    wr.imm_data = htonl(d->CS.ImmediateData);
    wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
    if ((d->CS.Control & VIP_CONTROL_QFENCE) != 0) wr.send_flags |= IBV_SEND_FENCE;
    if (operation < VIP_CONTROL_OP_RDMAREAD && total != 0 && total <= link.inline_bytes)
        wr.send_flags |= IBV_SEND_INLINE;
    if (operation == VIP_CONTROL_OP_RESERVED) {  // an atomic operation: check_send refuses all others
        if (!make_atomic(*ep.vi, d, total, key, &wr)) return false;
    } else if (rdma) {
        wr.wr.rdma.remote_addr = segments_of(d)->Remote.Data.AddressBits;
        wr.wr.rdma.rkey = key;
    }
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(link.data, &wr, &bad) != 0) return false;
    Sent& one = ep.sent[position & ep.vi->send.mask];
    one = Sent{};
    one.status = sent_status_op(d->CS.Control);
    one.length = total;
    one.key = key;
    one.takes_receive = !rdma || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (one.takes_receive) one.ordinal = link.recovery.sent++;
    ep.device_end = position + 1;
    return true;
}

// Whether fewer than send_window descriptors are with the device and not complete.
bool has_room(const Endpoint& ep) { return ep.vi->send.taken - ep.vi->send.completed < ep.send_window; }

// Whether the descriptor behind the head is a send that will be posted right after it: the completion of that one shows
// that the head is complete too.
bool another_follows(const Endpoint& ep) {
    const WorkQueue& q = ep.vi->send;
    if (q.posted - q.taken < 2 || q.taken + 1 - q.completed >= ep.send_window) return false;
    const VIP_DESCRIPTOR* next = q.at(q.taken + 1);
    uint64_t total = 0;
    return operation_of(next) == VIP_CONTROL_OP_SENDRECV && check_send(*ep.vi, next, &total) == 0;
}

// Takes the first descriptor that is not taken: posts it, or completes it with its error. False: it stays in the queue,
// because the key of its target is not known yet.
bool take_send(Endpoint& ep, Link& link) {
    WorkQueue& q = ep.vi->send;
    VIP_DESCRIPTOR* d = q.next_untaken();
    const uint32_t operation = operation_of(d);
    uint64_t total = 0;
    if (const uint32_t error = check_send(*ep.vi, d, &total); error != 0) {
        refuse_descriptor(ep, q.taken++, error);
        return true;
    }
    uint32_t key = 0;
    if (operation != VIP_CONTROL_OP_SENDRECV) {
        const uint64_t reach = is_atomic(d->CS.Control) ? atomic_width(d->CS.Control, total) : total;
        const Step step = find_remote(link, d, operation, reach, q.completed == q.taken, &key);
        if (step == Step::wait) return false;
        if (step == Step::refuse) {
            refuse_rdma(ep, d, q.taken++, static_cast<uint32_t>(total));
            return true;
        }
    }
    // A completion shows that all earlier ones are complete, so of sends in a row not each one needs its own.
    const bool signalled = q.taken % kSignalEvery == kSignalEvery - 1 || !another_follows(ep);
    if (!post_one(ep, link, q.taken, static_cast<uint32_t>(total), key, signalled)) {
        VIADUCT_LOG(error, "verbs", "the device does not take a send");
        refuse_descriptor(ep, q.taken++, VIP_STATUS_TRANSPORT_ERROR);
        return true;
    }
    ++q.taken;
    return true;
}

// Notes whether the send queue has descriptors that the device could not be given, which the progress thread then
// posts when there is room.
void note_backlog(Endpoint& ep, bool now) {
    if (ep.backlog == now) return;
    ep.backlog = now;
    if (now) {
        ep.nic->backlogs.fetch_add(1);
        arm(*ep.send_group);
        wake_progress(*ep.nic);
    } else {
        ep.nic->backlogs.fetch_sub(1);
    }
}

// Posts a send again after a recovery (recover.hpp). It is checked again: the program may have changed its memory.
void repost(Endpoint& ep, uint32_t position) {
    const VIP_DESCRIPTOR* d = ep.vi->send.at(position);
    const uint32_t key = ep.sent[position & ep.vi->send.mask].key;
    uint64_t total = 0;
    if (const uint32_t error = check_send(*ep.vi, d, &total); error != 0) return refuse_descriptor(ep, position, error);
    if (!post_one(ep, *ep.link, position, static_cast<uint32_t>(total), key, true))
        refuse_descriptor(ep, position, VIP_STATUS_TRANSPORT_ERROR);
}

}  // namespace

// Completes what is finished, in posting order.
void complete_in_order(Endpoint& ep) {
    WorkQueue& q = ep.vi->send;
    while (q.completed != q.taken) {
        const Sent one = ep.sent[q.completed & q.mask];
        const bool finished = one.state == Sent::decided || static_cast<int32_t>(ep.on_device - q.completed) > 0;
        if (!finished) return;
        complete_head(q, one.status, one.length);
        if (one.breaks) {
            break_connection(ep, VIP_ERROR_CONN_LOST, one.report);
            return;
        }
    }
}

void repost_sends(Endpoint& ep) {
    const WorkQueue& q = ep.vi->send;
    ep.on_device = ep.device_end = ep.send_seen = q.completed;
    for (uint32_t p = q.completed; p != q.taken; ++p)
        if (ep.sent[p & q.mask].state == Sent::posted) repost(ep, p);
    note_sends(ep);
}

void push_sends(Endpoint& ep) {
    WorkQueue& q = ep.vi->send;
    if (ep.link == nullptr || !ep.connected || ep.link->recovery.under_way) return;
    bool waits = false;
    while (q.has_untaken() && !ep.stopped) {
        if (!has_room(ep) || !take_send(ep, *ep.link)) {
            waits = true;
            break;
        }
    }
    if (q.completed != q.taken && ep.sent[q.completed & q.mask].state == Sent::decided) [[unlikely]]
        complete_in_order(ep);  // the oldest one was refused here: no completion of the device will end it
    note_backlog(ep, waits && !ep.stopped);
    note_sends(ep);
}

void drain_sends(Endpoint& ep) {
    WorkQueue& q = ep.vi->send;
    if (!ep.connected || ep.send_arrivals.empty()) return;
    for (const Arrival* a = ep.send_arrivals.front(); a != nullptr; a = ep.send_arrivals.front()) {
        const Arrival one = *a;
        ep.send_arrivals.pop();
        const uint32_t distance = one.position - q.completed;
        if (one.generation != ep.link->generation) continue;
        ep.send_seen = one.position + 1;
        if (distance >= q.taken - q.completed) continue;
        if (one.status != IBV_WC_SUCCESS) {
            // Descriptors behind the failed one are flushed by libvipl.
            if (!ep.vi->is_marked_broken()) fail_send(ep, one);
            continue;
        }
        ep.on_device = one.position + 1;
        complete_in_order(ep);
    }
    note_sends(ep);
}

// The entries below hold pthread_cancel off: to post a send is a system call with a software device (rxe), and any
// driver may make one when it meets an error (some print a message).
void kick_send(ViCore& vi) {
    const CancellationHeldOff inside_hot_calls;
    Endpoint& ep = *vi.endpoint;
    if (ep.backlog && !has_room(ep)) collect(*ep.send_group);
    if (!ep.send_arrivals.empty()) drain_sends(ep);
    push_sends(ep);
}

void poll_send(ViCore& vi) {
    const CancellationHeldOff inside_hot_calls;
    Endpoint& ep = *vi.endpoint;
    if (ep.send_arrivals.empty()) collect(*ep.send_group);
    if (ep.send_arrivals.empty() && !ep.backlog) return;
    drain_sends(ep);
    if (ep.backlog) push_sends(ep);
}

}  // namespace viaduct::verbs
