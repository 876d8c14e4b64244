// SPDX-License-Identifier: BSD-2-Clause
// The asking side of connections: the events of an attempt, and how it ends.
#include "providers/verbs/connect.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/connect_probe.hpp"
#include "providers/verbs/mapping.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr int64_t kFirstPauseNs = 5'000'000;
constexpr int64_t kLongestPauseNs = 50'000'000;

sockaddr_in socket_address(in_addr ip, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = ip;
    address.sin_port = htons(port);
    return address;
}

void retry_later(ConnectOp& op) {
    op.retry_pause = std::clamp(2 * op.retry_pause, kFirstPauseNs, kLongestPauseNs);
    op.retry_at = now_ns() + op.retry_pause;
}

// No program waits for us at that port: the next port, then all of them again for a while.
void try_next(ConnectOp& op) {
    retire_id(*op.nic, op.id);
    disarm_probe_timer(op);
    if (++op.tries < kPortTries) return begin_try(op);
    op.tries = 0;
    if (op.kind == ConnectOp::request && now_ns() >= op.begun + limit_ns(TimeLimit::verbs_grace))
        return decide(op, Status::no_match);
    retry_later(op);
}

// There is no way to the other host. Between peers, once a request has been out, the requester goes on
// until its timeout.
void find_no_way(ConnectOp& op) {
    if (op.kind != ConnectOp::peer || op.probe_interval == 0) return decide(op, Status::timeout);
    retire_id(*op.nic, op.id);
    retry_later(op);
}

void send_request(ConnectOp& op) {
    if (!prepare_link(op, op.id)) return decide(op, Status::out_of_resources);
    uint8_t data[kRequestBytes];
    write_request(private_data_of(op), data);
    rdma_conn_param param;
    fill(op, data, sizeof data, &param);
    if (ops->connect(op.id, &param) != 0) return decide(op, Status::out_of_resources);
    arm_probe_timer(op);
}

void take_response(ConnectOp& op, const CmEvent& event) {
    PrivateData private_data;
    const Status read = read_accept(event.data, event.bytes, &private_data);
    if (read != Status::ok) return decide(op, read == Status::version ? read : Status::broken);
    op.link->peer = private_data;
    op.link->peer_reads = event.reads;
    if (!make_ready(*op.link, op.id) || ops->establish(op.id) != 0) return decide(op, Status::broken);
    op.result.remote = op.remote;
    op.result.remote_traits = private_data.traits;
    decide(op, Status::ok);
}

void take_rejection(ConnectOp& op, const CmEvent& event) {
    Refusal why = Refusal::no_match;
    read_refusal(event.data, event.bytes, &why);
    switch (why) {
        case Refusal::rejected:
            return decide(op, Status::rejected);
        case Refusal::mismatch_level:
            return decide(op, Status::mismatch_level);
        case Refusal::mismatch_mtu:
            return decide(op, Status::mismatch_mtu);
        case Refusal::no_resources:
            return decide(op, Status::timeout);
        case Refusal::version:
        case Refusal::unknown:
            return decide(op, Status::version);
        case Refusal::use_mine:
            op.tries = kPortTries - 1;  // found: wait for its request instead of looking further
            return try_next(op);
        case Refusal::known:  // no answer to a request
        case Refusal::no_match:
            break;
    }
    try_next(op);
}

// An event of an id that an attempt made or accepted.
void advance(ConnectOp& op, const CmEvent& event) {
    if (!op.decided && op.probe != nullptr && event.id == op.probe) return advance_probe(op, event);
    if (event.id != op.id) return;
    if (op.decided) {
        // The peer has left again before the program was told that it is connected.
        const bool connected = op.result.status == Status::ok && op.link != nullptr;
        if (connected && event.type == RDMA_CM_EVENT_DISCONNECTED) lose_link(*op.link);
        return;
    }
    switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (ops->resolve_route(op.id, resolve_ms()) != 0) find_no_way(op);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            send_request(op);
            break;
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            take_response(op, event);
            break;
        case RDMA_CM_EVENT_ESTABLISHED:
            decide(op, Status::ok);
            break;
        case RDMA_CM_EVENT_REJECTED:
            if (op.answering) return answer_failed(op);
            if (op.kind == ConnectOp::accept) return decide(op, Status::timeout);
            take_rejection(op, event);
            break;
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR:
            find_no_way(op);
            break;
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_CONNECT_ERROR:
        case RDMA_CM_EVENT_DISCONNECTED:
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            if (op.answering) return answer_failed(op);
            if (op.kind == ConnectOp::accept && event.type == RDMA_CM_EVENT_DISCONNECTED) {
                // Only a connected end disconnects: its confirmation is what is missing.
                decide(op, Status::ok);
                return lose_link(*op.link);
            }
            decide(op, Status::timeout);
            break;
        default:
            break;
    }
}

}  // namespace

bool resolve_route(ConnectOp& op, rdma_cm_id** id) {
    NicContext& nic = *op.nic;
    in_addr ip{};
    if (!ip_of(op.remote.host, &ip)) return false;
    if (ops->create_id(nic.events, id, nullptr, RDMA_PS_TCP) != 0) {
        *id = nullptr;
        return false;
    }
    nic.owners[*id].op = &op;
    sockaddr_in from = socket_address(nic.ip, 0);
    sockaddr_in to = socket_address(ip, static_cast<uint16_t>(port_of(nic.settings, op.remote) + op.tries));
    return ops->resolve_addr(*id, reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to), resolve_ms()) ==
           0;
}

void begin_try(ConnectOp& op) {
    in_addr unused{};
    op.retry_at = 0;
    if (!ip_of(op.remote.host, &unused))
        return decide(op, Status::no_match);  // no address of this kind of NIC
    if (resolve_route(op, &op.id)) return;
    op.id == nullptr ? decide(op, Status::out_of_resources) : find_no_way(op);
}

PrivateData private_data_of(const ConnectOp& op) {
    PrivateData private_data;
    private_data.kind = op.kind == ConnectOp::peer ? PrivateDataKind::peer : PrivateDataKind::request;
    private_data.traits = op.traits;
    private_data.control_qp = op.link->control_qp->qp_num;
    private_data.nonce = op.nonce;
    private_data.local = op.local;
    private_data.remote = op.remote;
    return private_data;
}

void fill(const ConnectOp& op, const void* data, size_t bytes, rdma_conn_param* param) {
    std::memset(param, 0, sizeof *param);
    param->private_data = data;
    param->private_data_len = static_cast<uint8_t>(bytes);
    param->responder_resources = param->initiator_depth = std::max<uint8_t>(op.nic->reads, 1);
    param->flow_control = 1;
    param->retry_count = op.nic->settings.retries;
    param->rnr_retry_count = 0;
    param->qp_num = op.link->data->qp_num;
}

void answer_failed(ConnectOp& op) {
    op.answering = false;
    retire_id(*op.nic, op.id);
    drop_link_of(op);
    if (compare_ends(op.local, op.remote) == 0) retry_later(op);
}

void decide(ConnectOp& op, Status status) {
    if (op.decided) return;
    op.decided = true;
    op.retry_at = 0;
    op.result.status = status;
    op.nic->connect_changed.notify_all();
}

void drop_link_of(ConnectOp& op) {
    if (op.link == nullptr) return;
    op.vi->recv.lock.lock();  // no thread posts receives to its queue pair after this
    op.vi->endpoint->takes_receives = nullptr;
    op.vi->recv.lock.unlock();
    drop_link(op.link);
    op.link = nullptr;
    op.link_initial = false;
}

void retire_id(NicContext& nic, rdma_cm_id*& id) {
    if (id == nullptr) return;
    nic.ids_to_destroy.push_back(id);  // first: it may throw
    nic.owners.erase(id);
    id = nullptr;
    wake_progress(nic);
}

bool prepare_link(ConnectOp& op, rdma_cm_id* id) {
    Endpoint& ep = *op.vi->endpoint;
    if (op.link == nullptr) op.link = create_link(ep, op.traits);
    if (op.link == nullptr) return false;
    if (op.link_initial) return true;
    if (!make_initial(*op.link, id)) return false;
    // Before the peer can use the connection: a message that meets no receive breaks it. From now on
    // those that are posted go to the device at once (kick_recv): the peer may be connected, and send, before
    // we are.
    op.vi->recv.lock.lock();
    ep.takes_receives = op.link;
    op.link->receives_end = op.vi->recv.completed;
    post_receives(ep, *op.link);
    op.vi->recv.lock.unlock();
    op.link_initial = true;
    return true;
}

Status answer_request(ConnectOp& op, rdma_cm_id* id, const PrivateData& requester, uint8_t reads) {
    op.id = id;
    op.nic->owners[id] = IdOwner{&op, nullptr, 0, false};
    if (op.link == nullptr) op.link = create_link(*op.vi->endpoint, op.traits);
    if (op.link == nullptr) {
        refuse(id, Refusal::no_resources);
        return Status::out_of_resources;
    }
    op.link->peer = requester;
    op.link->peer_reads = reads;
    uint8_t data[kAcceptBytes];
    write_accept(private_data_of(op), data);
    rdma_conn_param param;
    fill(op, data, sizeof data, &param);
    op.result.remote = requester.local;
    op.result.remote_traits = requester.traits;
    // rdma_cm has no path any more when the requester has left.
    const bool accepted = prepare_link(op, id) && make_ready(*op.link, id) && ops->accept(id, &param) == 0;
    return accepted ? Status::ok : Status::timeout;
}

void refuse(rdma_cm_id* id, Refusal why) {
    uint8_t data[kRejectBytes];
    write_refusal(why, data);
    ops->reject(id, data, sizeof data);
}

void handle_event(NicContext& nic, const CmEvent& event) {
    VIADUCT_LOG(debug, "verbs", "%s, status %d", ::rdma_event_str(event.type), event.status);
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(nic, event);
    const auto found = nic.owners.find(event.id);
    if (found == nic.owners.end()) return;  // of an id that is on its way out
    const IdOwner owner = found->second;
    if (owner.op != nullptr) return advance(*owner.op, event);
    const bool over = event.type == RDMA_CM_EVENT_DISCONNECTED ||
                      event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
                      event.type == RDMA_CM_EVENT_CONNECT_ERROR || event.type == RDMA_CM_EVENT_UNREACHABLE ||
                      event.type == RDMA_CM_EVENT_REJECTED;
    if (!over) return;
    if (owner.link != nullptr) {
        lose_link(*owner.link);
    } else if (const auto i = nic.incoming.find(owner.incoming); i != nic.incoming.end()) {
        i->second.closed = true;
    }
}

Deadline run_timers(NicContext& nic, int64_t now) {
    Deadline next = kNever;
    for (ConnectOp* op : nic.retrying) {
        if (!op->decided && now >= op->deadline) decide(*op, Status::timeout);
        if (!op->decided && op->retry_at != 0 && now >= op->retry_at) begin_try(*op);
        if (!op->decided && op->probe_at != 0 && now >= op->probe_at) on_probe_timer(*op, now);
        if (op->decided) continue;
        next = std::min(next, op->deadline);
        if (op->probe_at != 0) next = std::min(next, op->probe_at);
        if (op->retry_at != 0) next = std::min(next, op->retry_at);
    }
    return next;
}

}  // namespace viaduct::verbs
