// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/connect_probe.hpp"

#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

void repeat_request(ConnectOp& op) {
    VIADUCT_LOG(info, "verbs", "a request for a connection was lost");
    retire_id(*op.nic, op.id);
    retire_id(*op.nic, op.probe);
    op.probe_at = 0;
    // The other side may still have the queue pair of the old request, and would refuse it in a new one.
    drop_link_of(op);
    // A late copy of the old request must not count as this one. Between peers the nonce decides whose
    // request counts.
    if (op.kind == ConnectOp::request) op.nonce = new_nonce(*op.nic);
    begin_try(op);
}

void send_probe(ConnectOp& op) {
    PrivateData private_data = private_data_of(op);
    private_data.kind = PrivateDataKind::probe;
    uint8_t data[kRequestBytes];
    write_request(private_data, data);
    rdma_conn_param param;
    fill(op, data, sizeof data, &param);
    param.qp_num = op.link->control_qp->qp_num;  // a number that no other request has
    if (ops->connect(op.probe, &param) != 0) retire_id(*op.nic, op.probe);
}

}  // namespace

void arm_probe_timer(ConnectOp& op) {
    op.probe_interval = std::clamp(2 * op.probe_interval, kFirstProbeNs, kLongestProbeNs);
    op.probe_at = now_ns() + op.probe_interval;
}

void disarm_probe_timer(ConnectOp& op) {
    op.probe_at = op.probe_interval = 0;
    retire_id(*op.nic, op.probe);
}

void on_probe_timer(ConnectOp& op, int64_t now) {
    if (op.kind == ConnectOp::peer) return repeat_request(op);
    retire_id(*op.nic, op.probe);  // one that has had no answer either
    op.probe_interval = std::min(2 * op.probe_interval, kLongestProbeNs);
    op.probe_at = now + op.probe_interval;
    if (!resolve_route(op, &op.probe)) retire_id(*op.nic, op.probe);
}

void advance_probe(ConnectOp& op, const CmEvent& event) {
    Refusal why = Refusal::no_match;
    switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (ops->resolve_route(op.probe, resolve_ms()) != 0) retire_id(*op.nic, op.probe);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            send_probe(op);
            break;
        case RDMA_CM_EVENT_REJECTED:
            read_refusal(event.data, event.bytes, &why);
            if (why == Refusal::unknown)
                return disarm_probe_timer(op);  // no probes there: the kernel's own repetition remains
            retire_id(*op.nic, op.probe);
            if (why != Refusal::known) repeat_request(op);
            break;
        default:  // as if it had been lost: another one follows
            retire_id(*op.nic, op.probe);
            break;
    }
}

}  // namespace viaduct::verbs
