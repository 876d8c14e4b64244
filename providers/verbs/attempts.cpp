// SPDX-License-Identifier: BSD-2-Clause
// The operations of the provider contract that connect: attempts are made, waited for and finished.
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "core/clock/clock.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/connect_probe.hpp"
#include "providers/verbs/mapping.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"

namespace viaduct::verbs {

namespace {

std::unique_ptr<ConnectOp> new_op(ConnectOp::Kind kind, NicContext* nic, ViCore* vi) {
    std::unique_ptr<ConnectOp> op(new (std::nothrow) ConnectOp);
    if (op) {
        op->kind = kind;
        op->nic = nic;
        op->vi = vi;
        op->begun = now_ns();
    }
    return op;
}

std::unique_ptr<ConnectOp> new_attempt(ConnectOp::Kind kind, NicContext* nic, ViCore& vi,
                                       const EndAddress& local, const EndAddress& remote,
                                       const ViTraits& traits, Deadline deadline) {
    auto op = new_op(kind, nic, &vi);
    if (!op) return nullptr;
    op->local = local;
    op->local.host = nic->info.address;  // programs leave it unset (spec/compat A5)
    op->remote = remote;
    op->traits = traits;
    op->deadline = deadline;
    return op;
}

bool fits(const EndAddress& end) { return end.discriminator_len <= kMaxDiscriminatorHere; }

// Takes an attempt out of every list. connect_mutex held.
void unlist(ConnectOp& op) {
    NicContext& nic = *op.nic;
    nic.waiting.remove(&op);
    nic.peers.remove(&op);
    nic.retrying.remove(&op);
}

// Into the lists, and the first try. Without memory it is in none of them. connect_mutex held.
Status begin(ConnectOp& op, bool asks) try {
    NicContext& nic = *op.nic;
    if (op.kind == ConnectOp::peer) nic.peers.push_back(&op);
    nic.retrying.push_back(&op);
    if (asks) begin_try(op);
    wake_progress(nic);
    return Status::ok;
} catch (const std::exception&) {
    unlist(op);
    retire_id(*op.nic, op.id);
    return Status::out_of_resources;
}

void bind(ConnectOp& op) {
    Link& link = *op.link;
    op.link = nullptr;
    link.id = op.id;
    op.nic->owners[op.id] = IdOwner{nullptr, &link, 0, false};
    op.id = nullptr;
    const std::scoped_lock both(op.vi->recv.lock, op.vi->send.lock);
    op.vi->endpoint->link = &link;
    link.joined.store(true);
}

}  // namespace

Status listen(NicContext* nic, const EndAddress& local, Deadline, ConnectOp** out) {
    if (!fits(local)) return Status::invalid;
    if (const Status s = ensure_progress(*nic); s != Status::ok) return s;
    auto op = new_op(ConnectOp::listen, nic, nullptr);
    if (!op) return Status::out_of_resources;
    op->local = local;
    const std::lock_guard lock(nic->connect_mutex);
    if (!ensure_listener(*nic, local)) return Status::out_of_resources;
    nic->waiting.push_back(op.get());
    *out = op.release();
    return Status::ok;
}

Status request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
               const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    if (!fits(local) || !fits(remote)) return Status::invalid;
    if (const Status s = ensure_progress(*nic); s != Status::ok) return s;
    auto op = new_attempt(ConnectOp::request, nic, vi, local, remote, traits, deadline);
    if (!op) return Status::out_of_resources;
    const std::lock_guard lock(nic->connect_mutex);
    op->nonce = new_nonce(*nic);
    if (const Status s = begin(*op, true); s != Status::ok) return s;
    *out = op.release();
    return Status::ok;
}

Status accept(NicContext* nic, uint64_t incoming, ViCore& vi, const ViTraits& traits, ConnectOp** out) {
    auto op = new_op(ConnectOp::accept, nic, &vi);
    if (!op) return Status::out_of_resources;
    op->traits = traits;
    const std::lock_guard lock(nic->connect_mutex);
    const auto found = nic->incoming.find(incoming);
    if (found == nic->incoming.end()) return Status::invalid;
    Incoming request = found->second;
    nic->incoming.erase(found);
    op->local = request.private_data.remote;
    if (request.closed) {
        retire_id(*nic, request.id);
        decide(*op, Status::timeout);
    } else if (const Status s = answer_request(*op, request.id, request.private_data, request.reads);
               s != Status::ok) {
        decide(*op, s);
    }
    *out = op.release();
    return Status::ok;
}

Status reject(NicContext* nic, uint64_t incoming) {
    const std::lock_guard lock(nic->connect_mutex);
    const auto found = nic->incoming.find(incoming);
    if (found == nic->incoming.end()) return Status::invalid;
    refuse(found->second.id, Refusal::rejected);
    retire_id(*nic, found->second.id);
    nic->incoming.erase(found);
    return Status::ok;
}

Status connect_await(ConnectOp* op, Deadline deadline, ConnectResult* result) {
    std::unique_lock lock(op->nic->connect_mutex);
    const auto decided = [op] { return op->decided; };
    if (deadline == kNever) {
        op->nic->connect_changed.wait(lock, decided);
    } else {
        const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
        op->nic->connect_changed.wait_until(lock, until, decided);
    }
    if (!op->decided) return Status::not_done;
    *result = op->result;
    return op->result.status;
}

Status connect_finish(ConnectOp* op, ConnectResult* result) {
    const std::unique_ptr<ConnectOp> owned(op);
    NicContext& nic = *op->nic;
    const std::lock_guard lock(nic.connect_mutex);
    decide(*op, Status::timeout);
    unlist(*op);
    disarm_probe_timer(*op);
    *result = op->result;
    if (op->result.status == Status::ok && op->kind != ConnectOp::listen) {
        bind(*op);
    } else {
        retire_id(nic, op->id);
        drop_link_of(*op);
    }
    return op->result.status;
}

Status peer_request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
                    const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    if (!fits(local) || !fits(remote)) return Status::invalid;
    if (const Status s = ensure_progress(*nic); s != Status::ok) return s;
    auto op = new_attempt(ConnectOp::peer, nic, vi, local, remote, traits, deadline);
    if (!op) return Status::out_of_resources;
    const int order = compare_ends(op->local, op->remote);
    const std::lock_guard lock(nic->connect_mutex);
    op->nonce = new_nonce(*nic);
    if (order <= 0 && !ensure_listener(*nic, op->local)) return Status::out_of_resources;
    if (const Status s = begin(*op, order >= 0); s != Status::ok) return s;
    *out = op.release();
    return Status::ok;
}

}  // namespace viaduct::verbs
