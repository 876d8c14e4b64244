// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/doubt.hpp"

#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/calls.hpp"
#include "providers/verbs/nic.hpp"

namespace viaduct::verbs {

namespace {

void ask_anew(ConnectOp& op) {
    VIADUCT_LOG(info, "verbs", "a request for a connection was lost");
    retire_id(*op.nic, op.id);
    retire_id(*op.nic, op.probe);
    op.doubt_at = 0;
    // The other side may still know the queue pair by the old request, and would refuse it in a new one.
    give_up_link(op);
    // A late copy of the old request is none of this one. Between peers the nonce decides whose request
    // counts.
    if (op.kind == ConnectOp::request) op.nonce = new_nonce(*op.nic);
    begin_try(op);
}

void send_probe(ConnectOp& op) {
    Hello hello = hello_of(op);
    hello.kind = HelloKind::probe;
    uint8_t data[kRequestBytes];
    write_request(hello, data);
    rdma_conn_param param;
    fill(op, data, sizeof data, &param);
    param.qp_num = op.link->companion->qp_num;  // a number that no other request has
    if (calls->connect(op.probe, &param) != 0) retire_id(*op.nic, op.probe);
}

}  // namespace

void begin_doubt(ConnectOp& op) {
    op.doubt_pause = std::clamp(2 * op.doubt_pause, kFirstDoubtNs, kLongestDoubtNs);
    op.doubt_at = now_ns() + op.doubt_pause;
}

void end_doubt(ConnectOp& op) {
    op.doubt_at = op.doubt_pause = 0;
    retire_id(*op.nic, op.probe);
}

void doubt(ConnectOp& op, int64_t now) {
    if (op.kind == ConnectOp::peer) return ask_anew(op);
    retire_id(*op.nic, op.probe);  // one that has had no answer either
    op.doubt_pause = std::min(2 * op.doubt_pause, kLongestDoubtNs);
    op.doubt_at = now + op.doubt_pause;
    if (!find_way(op, &op.probe)) retire_id(*op.nic, op.probe);
}

void advance_probe(ConnectOp& op, const CmEvent& event) {
    Refusal why = Refusal::no_match;
    switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (calls->resolve_route(op.probe, kResolveMs) != 0) retire_id(*op.nic, op.probe);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            send_probe(op);
            break;
        case RDMA_CM_EVENT_REJECTED:
            read_refusal(event.data, event.bytes, &why);
            if (why == Refusal::unknown)
                return end_doubt(op);  // it cannot tell: the kernel's patience remains
            retire_id(*op.nic, op.probe);
            if (why != Refusal::known) ask_anew(op);
            break;
        default:  // as if it had been lost: there will be another
            retire_id(*op.nic, op.probe);
            break;
    }
}

}  // namespace viaduct::verbs
