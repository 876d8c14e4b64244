// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/failed.hpp"

#include <utility>

#include "core/log/log.hpp"
#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/link.hpp"
#include "providers/verbs/mapping.hpp"
#include "providers/verbs/recover.hpp"

namespace viaduct::verbs {

namespace {

// A descriptor whose end is known, and is told when its turn has come.
void settle(Endpoint& ep, uint32_t position, uint32_t status, uint32_t length, bool breaks, bool report) {
    Sent& one = ep.sent[position & ep.vi->send.mask];
    one = Sent{};
    one.state = Sent::decided;
    one.breaks = breaks;
    one.report = report;
    one.status = status;
    one.length = length;
    if (breaks) ep.stopped = true;
}

// Something comes back: a refusal is told to the descriptor at every level.
bool fetches(const VIP_DESCRIPTOR* d) {
    return operation_of(d) == VIP_CONTROL_OP_RDMAREAD || is_atomic(d->CS.Control);
}

void tell_refused(Link& link, const VIP_DESCRIPTOR* d) {
    if (fetches(d)) return tell_peer(link, MessageKind::read_refused);
    Message m;
    m.kind = MessageKind::write_refused;
    if (has_immediate(d)) {
        m.flags = kWithImmediate;
        m.key = d->CS.ImmediateData;
    }
    tell_peer(link, m);
}

// What an error completion says about a send. Some devices report "bad work request" also for memory that was unmapped
// after it was checked, and for a route to the peer that was lost with its link. Neither is the descriptor's fault.
Outcome map_failed(const Endpoint& ep, const VIP_DESCRIPTOR* d, ibv_wc_status status) {
    uint32_t known = 0;
    if (status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_LOC_EEC_OP_ERR) {
        uint64_t total = 0;
        known = check_send(*ep.vi, d, &total);
        if (known == 0) status = IBV_WC_GENERAL_ERR;
    }
    Outcome v = map_send(status, ep.vi->traits.reliability, fetches(d));
    if (known != 0) v.bits = known;
    return v;
}

}  // namespace

void break_connection(Endpoint& ep, VIP_ERROR_CODE code, bool report) {
    ep.vi->mark_broken(BreakReason{code, VIP_RESOURCE_VI, 0, nullptr, report, {}, false});
}

void refuse_descriptor(Endpoint& ep, uint32_t position, uint32_t error) {
    settle(ep, position, sent_status_op(ep.vi->send.at(position)->CS.Control) | error, 0, !unreliable(ep),
           false);
}

void refuse_rdma(Endpoint& ep, const VIP_DESCRIPTOR* d, uint32_t position, uint32_t total) {
    const uint32_t status = sent_status_op(d->CS.Control);
    tell_refused(*ep.link, d);
    if (unreliable(ep)) {
        settle(ep, position, status, total, false, false);  // dropped at the target
    } else if (fetches(d) || ep.vi->traits.reliability == VIP_SERVICE_RELIABLE_RECEPTION) {
        settle(ep, position, status | VIP_STATUS_RDMA_PROT_ERROR, 0, true, false);
    } else {
        settle(ep, position, status, total, true, true);  // the network had accepted it
    }
}

void complete_refused_write(WorkQueue& q, uint32_t immediate) {
    q.oldest_incomplete()->CS.ImmediateData = immediate;
    complete_head(q, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR, 0);
}

void fail_send(Endpoint& ep, const Arrival& a) {
    WorkQueue& q = ep.vi->send;
    const auto status = static_cast<ibv_wc_status>(a.status);
    const VIP_DESCRIPTOR* d = q.at(a.position);
    const Outcome v = map_failed(ep, d, status);
    VIADUCT_LOG(info, "verbs", "send failed: %s", ::ibv_wc_status_str(status));
    if (!v.descriptor) {  // flushed: something else has failed, here or there
        if (!unreliable(ep)) ep.stopped = true;
        suspect(*ep.link);
        return;
    }
    ep.on_device = a.position;  // everything before it went well
    const uint32_t length = v.bits == 0 ? ep.sent[a.position & q.mask].length : 0;
    settle(ep, a.position, sent_status_op(d->CS.Control) | v.bits, length, !v.goes_on, v.report);
    if (v.no_receive) tell_peer(*ep.link, MessageKind::no_receive);
    if (v.refused) tell_refused(*ep.link, d);
    if (v.goes_on) want_recovery(*ep.link);
    complete_in_order(ep);
}

void fail_receive(Endpoint& ep, const Arrival& a) {
    WorkQueue& q = ep.vi->recv;
    const Outcome v = map_receive(static_cast<ibv_wc_status>(a.status), ep.vi->traits.reliability);
    if (!v.descriptor) {
        suspect(*ep.link);
        return;
    }
    uint32_t known = std::exchange(ep.bad_receive[a.position & q.mask], 0) & ~kReceiveHolds;
    // Memory that went away since it was posted is what some devices call a bad work request.
    uint64_t capacity = 0;
    if (known == 0) known = check_receive(*ep.vi, q.oldest_incomplete(), &capacity);
    ++ep.link->recovery.received;
    complete_head(q, VIP_STATUS_OP_RECEIVE | (known != 0 ? known : v.bits), 0);
    if (v.goes_on) {
        want_recovery(*ep.link);
    } else {
        break_connection(ep, VIP_ERROR_CONN_LOST, v.report);
    }
}

}  // namespace viaduct::verbs
