// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/control_qp.hpp"

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "providers/verbs/failed.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/recover.hpp"
#include "providers/verbs/verbs_ops.hpp"
#include "vipl.h"

namespace viaduct::verbs {

namespace {

// Number of a control QP's work request: link number, generation, receive 1, buffer 8 bits.
uint64_t control_wr_id(const Link& link, bool receive, uint32_t buffer) {
    return uint64_t{link.number} << 32 | uint64_t{link.generation} << 16 | uint64_t{receive} << 8 | buffer;
}

std::byte* receive_buffer(const Link& link, uint32_t i) { return link.buffers + i * kMessageBytes; }
std::byte* send_buffer(const Link& link, uint32_t i) {
    return link.buffers + (kControlDepth + i) * kMessageBytes;
}

ibv_sge piece(const Link& link, std::byte* buffer) {
    return ibv_sge{reinterpret_cast<uintptr_t>(buffer), kMessageBytes, link.buffers_mr->lkey};
}

bool post_receive(Link& link, uint32_t buffer) {
    ibv_sge sge = piece(link, receive_buffer(link, buffer));
    ibv_recv_wr wr{};
    wr.wr_id = control_wr_id(link, true, buffer);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(link.control_qp, &wr, &bad) == 0;
}

// The owner of memory decides which peer may touch it: region, range, tag, enables of region and VI
// (spec/reliability 7). False: no room for the answer now.
bool answer_question(Link& link, Endpoint& ep, const Message& question) {
    NicContext& nic = *link.nic;
    const ViCore& vi = *ep.vi;
    const uint32_t wanted = question.flags & (kRegionRdmaWrite | kRegionRdmaRead);
    const uint32_t enabled = (link.traits.rdma_write != 0 ? kRegionRdmaWrite : 0u) |
                             (link.traits.rdma_read != 0 ? kRegionRdmaRead : 0u);
    Message answer;
    answer.kind = MessageKind::answer;
    answer.handle = question.handle;
    Region region;
    if (nic.regions->check(question.handle, question.address, question.length, vi.ptag) == RegionCheck::ok &&
        nic.regions->snapshot(question.handle, &region) && (wanted & ~(region.flags & enabled)) == 0) {
        answer.key = nic.keys.remote_key(question.handle);
        answer.address = region.base;
        answer.length = region.length;
        answer.flags = region.flags & enabled;
    }
    return send_message(link, answer);
}

void take_answer(Link& link, Endpoint& ep, const Message& answer) {
    ViCore& vi = *ep.vi;
    vi.send.lock.lock();
    Question& q = link.question;
    if (ep.link == &link && q.asked && !q.answered && q.handle == answer.handle) {
        q.answered = true;
        q.answer = RemoteKey{answer.address, answer.length, answer.key, answer.flags};
        push_sends(ep);
    }
    vi.send.lock.unlock();
}

// What the peer has found out about us (spec/errors 8).
void take_news(Link& link, Endpoint& ep, VIP_ERROR_CODE code, VIP_ULONG opcode) {
    ViCore& vi = *ep.vi;
    if (link.traits.reliability == VIP_SERVICE_UNRELIABLE) {
        vi.events->async_error(vi, code, VIP_RESOURCE_VI, opcode, nullptr);
    } else {
        vi.mark_broken(BreakReason{code, VIP_RESOURCE_VI, opcode, nullptr, true, {}, false});
    }
}

// A write with immediate data was refused: the receive that it would have taken says so (spec/reliability 7).
void take_refused_write(Link& link, Endpoint& ep, uint32_t immediate) {
    ViCore& vi = *ep.vi;
    if (link.traits.reliability == VIP_SERVICE_UNRELIABLE) return refuse_later(link, ep, immediate);
    vi.recv.lock.lock();
    bool told = false;
    if (ep.link == &link && ep.connected) {
        while (collect(*ep.recv_group)) drain_receives(ep);
        drain_receives(ep);
        told = vi.recv.completed != vi.recv.taken && !vi.is_marked_broken();
        if (told) complete_refused_write(vi.recv, immediate);
    }
    vi.recv.lock.unlock();
    const VIP_ERROR_CODE code = told ? VIP_ERROR_CONN_LOST : VIP_ERROR_RDMAW_PROT;
    vi.mark_broken(BreakReason{code, VIP_RESOURCE_VI, VIP_STATUS_OP_REMOTE_RDMA_WRITE, nullptr, !told, {}, false});
}

// False: a question that is still to be answered.
bool handle(Link& link, Endpoint& ep, const Message& m) {
    switch (m.kind) {
        case MessageKind::ask:
            return answer_question(link, ep, m);
        case MessageKind::answer:
            take_answer(link, ep, m);
            break;
        case MessageKind::no_receive:
            take_news(link, ep, VIP_ERROR_RECVQ_EMPTY, VIP_STATUS_OP_RECEIVE);
            break;
        case MessageKind::write_refused:
            if ((m.flags & kWithImmediate) != 0) {
                take_refused_write(link, ep, m.key);
                break;
            }
            take_news(link, ep, VIP_ERROR_RDMAW_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
            break;
        case MessageKind::read_refused:
            take_news(link, ep, VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ);
            break;
        case MessageKind::reset:
        case MessageKind::ready:
            handle_recovery(link, ep, m);
            break;
        case MessageKind::alive:
            return true;
    }
    ep.vi->events->settle(*ep.vi);
    return true;
}

// What has come into a buffer. A question that cannot be answered now keeps its buffer until it can: there is
// one at a time, and the peer waits for the answer for ever.
void take_message(Link& link, uint32_t buffer, uint32_t bytes) {
    Message m;
    const bool whole = read_message(receive_buffer(link, buffer), bytes, &m);
    Endpoint* ep = whole ? pin_endpoint(link) : nullptr;
    const bool done = ep == nullptr || handle(link, *ep, m);
    if (ep != nullptr) unpin_endpoint(*ep);
    if (done) {
        post_receive(link, buffer);
    } else {
        // A peer that asks again before it was answered, as no correct peer does, gets no answer to its first question.
        const int waits = std::exchange(link.unanswered, static_cast<int>(buffer));
        if (waits >= 0) post_receive(link, static_cast<uint32_t>(waits));
    }
}

// control_mutex held. False: as send_message.
bool post_message(Link& link, const Message& m) {
    if (link.free_sends == 0) return false;
    const uint32_t buffer = link.next_send % kControlDepth;
    write_message(m, send_buffer(link, buffer));
    ibv_sge sge = piece(link, send_buffer(link, buffer));
    ibv_send_wr wr{};
    wr.wr_id = control_wr_id(link, false, buffer);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(link.control_qp, &wr, &bad) != 0) return false;
    ++link.next_send;
    --link.free_sends;
    return true;
}

// control_mutex held.
void tell_waiting(Link& link) {
    while (!link.untold.empty() && post_message(link, link.untold.front())) link.untold.pop_front();
}

// Without room much is under way already, and tells as well whether the peer is there. What waits is tried
// too: a device that did not take it, with nothing under way, has no completion to come.
void say_alive(Link& link) {
    const std::lock_guard lock(link.control_mutex);
    tell_waiting(link);
    Message m;
    m.kind = MessageKind::alive;
    post_message(link, m);
}

// Links are freed by the progress thread only, which is the caller.
Link* link_of(NicContext& nic, uint64_t wr_id) {
    const std::lock_guard lock(nic.links_mutex);
    const auto number = static_cast<uint32_t>(wr_id >> 32);
    Link* link = number < nic.links.size() ? nic.links[number] : nullptr;
    return link != nullptr && link->generation == (wr_id >> 16 & kGenerationMask) ? link : nullptr;
}

void take(NicContext& nic, const ibv_wc& wc) {
    Link* link = link_of(nic, wc.wr_id);
    if (link == nullptr) return;
    if ((wc.wr_id >> 8 & 1) == 0) {
        {
            const std::lock_guard lock(link->control_mutex);
            ++link->free_sends;
            tell_waiting(*link);
        }
        // The peer's host does not answer any more. (Flushed: this end is leaving.)
        if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR) lose_link(*link);
        const int waits = std::exchange(link->unanswered, -1);
        if (waits >= 0) take_message(*link, static_cast<uint32_t>(waits), kMessageBytes);
        return;
    }
    if (wc.status == IBV_WC_SUCCESS) take_message(*link, static_cast<uint32_t>(wc.wr_id & 0xFF), wc.byte_len);
}

}  // namespace

bool post_control_receives(Link& link) {
    for (uint32_t i = 0; i < kControlDepth; ++i)
        if (!post_receive(link, i)) return false;
    return true;
}

bool send_message(Link& link, const Message& m) {
    const std::lock_guard lock(link.control_mutex);
    tell_waiting(link);
    return link.untold.empty() && post_message(link, m);
}

void tell_peer(Link& link, const Message& m) {
    const std::lock_guard lock(link.control_mutex);
    link.untold.push_back(m);
    tell_waiting(link);
}

bool ask_peer(Link& link, uint32_t region, uint64_t address, uint64_t length, uint32_t flags) {
    Message m;
    m.kind = MessageKind::ask;
    m.handle = region;
    m.address = address;
    m.length = length;
    m.flags = flags;
    return send_message(link, m);
}

bool reserve_control(NicContext& nic) {
    const std::lock_guard lock(nic.links_mutex);
    const auto wanted = static_cast<uint32_t>(nic.links.size()) * 2 * kControlDepth;
    if (wanted <= static_cast<uint32_t>(nic.control_cq->cqe)) return true;
    return ops->resize_cq(nic.control_cq,
                          static_cast<int>(2 * wanted < nic.most_entries ? 2 * wanted : nic.most_entries)) ==
           0;
}

void serve_control_qps(NicContext& nic) {
    ibv_cq* cq = nullptr;
    void* unused = nullptr;
    unsigned events = 0;
    while (ops->get_cq_event(nic.control_channel, &cq, &unused) == 0) ++events;
    if (events != 0) ops->ack_cq_events(nic.control_cq, events);
    ibv_req_notify_cq(nic.control_cq, 0);
    ibv_wc completions[16];
    for (int n = 0; (n = ibv_poll_cq(nic.control_cq, 16, completions)) > 0;)
        for (int i = 0; i < n; ++i) take(nic, completions[i]);
}

Deadline keep_alive(NicContext& nic, int64_t now) {
    const int64_t pause = int64_t{nic.settings.keepalive_ms} * 1'000'000;
    Deadline next = kNever;
    if (pause == 0) return next;
    for (Link* link : all_links(nic)) {
        if (!link->joined.load()) continue;
        if (now >= link->alive_at) {
            // Not at once: the connection has just been made.
            if (link->alive_at != 0) say_alive(*link);
            link->alive_at = now + pause;
        }
        next = std::min(next, link->alive_at);
    }
    return next;
}

}  // namespace viaduct::verbs
