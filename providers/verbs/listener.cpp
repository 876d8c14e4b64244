// SPDX-License-Identifier: BSD-2-Clause
// The accepting side of connections: where it listens, and which program a request is for.
#include <arpa/inet.h>

#include <cstring>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/connect_probe.hpp"
#include "providers/verbs/mapping.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr int kBacklog = 128;
constexpr int64_t kOthersFirstNs = 100'000'000;
constexpr size_t kMaxIncoming = 1024;

Refusal refusal_of(Status mismatch) {
    return mismatch == Status::mismatch_level ? Refusal::mismatch_level : Refusal::mismatch_mtu;
}

// The answer to a request that could not be read.
Refusal refusal_of_unread(Status why) {
    if (why == Status::version) return Refusal::version;
    return why == Status::not_supported ? Refusal::unknown : Refusal::no_match;
}

// A listener that is not needed any more stays until the NIC is closed, because programs often wait again at the same
// discriminator.
bool listen_at(NicContext& nic, uint16_t port) {
    rdma_cm_id* id = nullptr;
    if (ops->create_id(nic.events, &id, nullptr, RDMA_PS_TCP) != 0) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = nic.ip;
    address.sin_port = htons(port);
    if (ops->bind_addr(id, reinterpret_cast<sockaddr*>(&address)) != 0 || ops->listen(id, kBacklog) != 0) {
        ops->destroy_id(id);
        return false;
    }
    nic.listeners[port] = id;
    nic.owners[id].listener = true;
    return true;
}

// Sends the requester away; the id has no other use.
void turn_away(NicContext& nic, rdma_cm_id* id, Refusal why) {
    refuse(id, why);
    retire_id(nic, id);
}

void offer_to_waiter(NicContext& nic, rdma_cm_id* id, const PrivateData& private_data, uint8_t reads) {
    for (ConnectOp* op : nic.waiting) {
        if (op->decided || !op->local.same_discriminator(private_data.remote)) continue;
        if (nic.incoming.size() >= kMaxIncoming) return turn_away(nic, id, Refusal::no_resources);
        const uint64_t number = nic.next_incoming++;
        nic.incoming[number] = Incoming{id, private_data, reads, false};
        nic.owners[id] = IdOwner{nullptr, nullptr, number, false};
        op->result.incoming = number;
        op->result.remote = private_data.local;
        op->result.remote_traits = private_data.traits;
        return decide(*op, Status::ok);
    }
    turn_away(nic, id, Refusal::no_match);
}

// Whether this request of ours and that of another peer mean each other.
bool belong_together(const ConnectOp& op, const PrivateData& private_data) {
    return !op.decided && !op.answering && op.nonce != private_data.nonce &&
           op.remote == private_data.local && op.local.same_discriminator(private_data.remote);
}

// Two requests of one process, with one address on both ends, may be meant for two peers in another process: that other
// process has priority for a while.
bool too_early(const ConnectOp& op, const PrivateData& private_data) {
    return op.nonce >> 16 == private_data.nonce >> 16 && compare_ends(op.local, op.remote) == 0 &&
           now_ns() < op.begun + kOthersFirstNs;
}

void accept_peer(ConnectOp& op, rdma_cm_id* id, const PrivateData& private_data, uint8_t reads) {
    NicContext& nic = *op.nic;
    if (const Status s = compare(op.traits, private_data.traits); s != Status::ok) {
        decide(op, s);
        return turn_away(nic, id, refusal_of(s));
    }
    // Our own request, if one is under way: the other side has the queue pair from it and would take an
    // answer that names the same one for a left-over.
    if (op.id != nullptr) drop_link_of(op);
    retire_id(nic, op.id);
    disarm_probe_timer(op);
    op.retry_at = 0;
    op.answering = true;
    const Status s = answer_request(op, id, private_data, reads);
    if (s == Status::timeout) {
        answer_failed(op);
    } else if (s != Status::ok) {
        decide(op, s);
    }
}

void offer_to_peer(NicContext& nic, rdma_cm_id* id, const PrivateData& private_data, uint8_t reads) {
    for (ConnectOp* op : nic.peers) {
        if (!belong_together(*op, private_data) || too_early(*op, private_data)) continue;
        const int order = compare_ends(op->local, op->remote);
        const bool we_answer = order < 0 || (order == 0 && op->nonce < private_data.nonce);
        if (!we_answer) return turn_away(nic, id, Refusal::use_mine);
        return accept_peer(*op, id, private_data, reads);
    }
    turn_away(nic, id, Refusal::no_match);
}

}  // namespace

int compare_ends(const EndAddress& a, const EndAddress& b) {
    if (const int hosts = std::memcmp(a.host.bytes, b.host.bytes, kNicAddressBytes); hosts != 0) return hosts;
    if (a.discriminator_len != b.discriminator_len) return a.discriminator_len < b.discriminator_len ? -1 : 1;
    return std::memcmp(a.discriminator, b.discriminator, a.discriminator_len);
}

uint32_t new_nonce(NicContext& nic) { return nic.nonce_base | (nic.next_nonce++ & 0xFFFF); }

bool ensure_listener(NicContext& nic, const EndAddress& local) {
    const uint16_t first = port_of(nic.settings, local);
    for (uint32_t i = 0; i < kPortTries; ++i)
        if (nic.listeners.count(static_cast<uint16_t>(first + i)) != 0) return true;
    for (uint32_t i = 0; i < kPortTries; ++i)
        if (listen_at(nic, static_cast<uint16_t>(first + i))) return true;
    VIADUCT_LOG(warn, "verbs", "ports %u to %u are taken by other processes", first, first + kPortTries - 1);
    return false;
}

bool is_known(const NicContext& nic, const PrivateData& request) {
    const auto same = [&request](const PrivateData& one) {
        return one.nonce == request.nonce && one.local == request.local &&
               one.remote.same_discriminator(request.remote);
    };
    for (const auto& [number, one] : nic.incoming)
        if (!one.closed && same(one.private_data)) return true;
    for (const auto& [id, owner] : nic.owners) {  // accepted, and the answer is on its way
        const ConnectOp* op = owner.op;
        if (op != nullptr && op->kind == ConnectOp::accept && !op->decided && op->link != nullptr &&
            same(op->link->peer))
            return true;
    }
    return false;
}

void on_request(NicContext& nic, const CmEvent& event) {
    PrivateData private_data;
    const Status read = read_request(event.data, event.bytes, &private_data);
    if (read != Status::ok) return turn_away(nic, event.id, refusal_of_unread(read));
    if (private_data.kind == PrivateDataKind::probe)
        return turn_away(nic, event.id, is_known(nic, private_data) ? Refusal::known : Refusal::no_match);
    if (private_data.kind == PrivateDataKind::peer)
        return offer_to_peer(nic, event.id, private_data, event.reads);
    offer_to_waiter(nic, event.id, private_data, event.reads);
}

}  // namespace viaduct::verbs
