// SPDX-License-Identifier: BSD-2-Clause
// See connect.hpp; Joined in viaduct/kagent.hpp has the order of events.
#include "providers/paramnet/connect.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/shm/fd.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/progress.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct {

struct ConnectOp {
    enum Kind : uint8_t { listen, request, peer, accept };
    Kind kind = listen;
    NicContext* nic = nullptr;
    ViCore* vi = nullptr;
    ViTraits traits;
    Deadline deadline = kNever;
    Mail mail;  // kept, so that it can be sent again to the next agent
    uint32_t ticket = 0;
    Deadline sent = 0;      // when, to the present agent
    uint32_t deaths = 0;    // of agents, each within kSoonNs of being sent it
    bool decided = false;
    ConnectResult result;

    Status decide(Status status) {
        decided = true;
        result.status = status;
        return status;
    }
};

namespace paramnet {

namespace {

using kagent::Type;

constexpr int64_t kCourtesyNs = 1'000'000'000;  // limit for answers that the agent gives at once
constexpr int64_t kConfirmNs = 5'000'000'000;   // how long the acceptor waits for a confirmation (agent.confirm_ms)
// A request may be what agents die of. After so many deaths, each within kSoonNs of sending it, the attempt fails.
constexpr uint32_t kMostDeaths = 8;
constexpr int64_t kSoonNs = 1'000'000'000;

uint32_t timeout_for(Deadline deadline) {
    if (deadline == kNever) return 0xFFFFFFFFu;
    const int64_t ms = (remaining_ns(deadline) + 999'999) / 1'000'000;
    return ms < 0xFFFFFFFE ? static_cast<uint32_t>(ms) : 0xFFFFFFFEu;
}

// Sends the attempt's message to the agent.
Status send_off(ConnectOp& op, Deadline deadline) {
    const Status sent = op.nic->agent->agent_start(op.mail, &op.ticket, deadline);
    op.sent = now_ns();
    return sent;
}

constexpr int kDescriptorsOfJoined = 5;  // segment, three of the peer's, its process

// Whether this process has room for the descriptors of kJoined. Checked before the attempt is sent, so that no other
// process is told of a connection that would fail for that.
bool can_take_descriptors() {
    if (descriptors_left(kDescriptorsOfJoined)) return true;
    VIADUCT_LOG(error, "paramnet",
                "connecting: a connection needs %d descriptors more than this process may open (ulimit -n)",
                kDescriptorsOfJoined);
    return false;
}

Status begin(std::unique_ptr<ConnectOp> op, ConnectOp** out) {
    if (op->kind != ConnectOp::listen && !can_take_descriptors()) return Status::out_of_resources;
    if (const Status progress = ensure_progress(*op->nic); progress != Status::ok) return progress;
    // An accept names an incoming request, which only the agent that reported it has.
    const Deadline deadline = op->kind == ConnectOp::accept ? kOnlyConnected : op->deadline;
    if (const Status sent = send_off(*op, deadline); sent != Status::ok) return sent;
    *out = op.release();
    return Status::ok;
}

std::unique_ptr<ConnectOp> new_op(ConnectOp::Kind kind, NicContext* nic, ViCore* vi) {
    std::unique_ptr<ConnectOp> op(new (std::nothrow) ConnectOp);
    if (op) {
        op->kind = kind;
        op->nic = nic;
        op->vi = vi;
    }
    return op;
}

kagent::ConnRequest request_body(const ConnectOp& op, const EndAddress& local, const EndAddress& remote) {
    kagent::ConnRequest body;
    body.context_id = op.nic->context_id;
    body.local = local;
    body.remote = remote;
    body.traits = op.traits;
    body.timeout_ms = timeout_for(op.deadline);
    body.endpoint_words[kEndSlot] = op.vi->slot;
    return body;
}

Status begin_request(ConnectOp::Kind kind, Type type, NicContext* nic, ViCore& vi, const EndAddress& local,
                     const EndAddress& remote, const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    auto op = new_op(kind, nic, &vi);
    if (!op) return Status::out_of_resources;
    op->traits = traits;
    op->deadline = deadline;
    op->mail = Mail::of(type, request_body(*op, local, remote));
    return begin(std::move(op), out);
}

// Writes into the segment what the other end needs of this one before data flows.
void introduce(ConnectOp& op, const Joint& joint) {
    EndRecord& own = joint.shared()->ends[joint.side];
    const uint32_t permission =
        (op.traits.rdma_write != 0 ? kMayWrite : 0u) | (op.traits.rdma_read != 0 ? kMayRead : 0u);
    own.permission.store(permission, std::memory_order_relaxed);
    own.ptag.store(op.vi->ptag, std::memory_order_relaxed);
    own.pull_from.store(pull_threshold(*op.nic, *joint.peer), std::memory_order_relaxed);
    const bool maps_arena = joint.peer->arena.valid() && joint.peer->reach != Reach::same_process;
    own.maps_arena.store(maps_arena ? 1 : 0, std::memory_order_relaxed);
    own.needs_fence.store(asymmetric_barrier_available() ? 0 : 1, std::memory_order_relaxed);
    own.attached.store(1, std::memory_order_release);
}

// Confirms the connection, upon which the agent sends the acceptor its kJoined (kagent.hpp, Joined). False: the
// acceptor has given up, or the agent has not answered. The agent has until the request's deadline, from kCourtesyNs to
// kConfirmNs: it may be slow to get a processor.
bool confirm(const ConnectOp& op, uint64_t connection) {
    NicContext& nic = *op.nic;
    const Mail mail = Mail::of(Type::kConnConfirm, kagent::ConnConfirm{connection});
    uint32_t ticket = 0;
    if (nic.agent->agent_start(mail, &ticket, kOnlyConnected) != Status::ok) return false;
    Mail answer;
    const int64_t now = now_ns();
    const Deadline until = std::clamp(op.deadline, now + kCourtesyNs, now + kConfirmNs);
    const Status waited = nic.agent->agent_await(ticket, until, &answer);
    if (waited == Status::not_done) nic.agent->agent_abandon(ticket, nullptr, 0);
    return waited == Status::ok && answer.type() == Type::kDone;
}

// Sends the agent a message whose answer is not waited for.
Status tell(UserAgent& agent, Type type, uint64_t context_id, uint64_t incoming) {
    uint32_t ticket = 0;
    const Mail mail = Mail::of(type, kagent::IncomingRef{context_id, incoming});
    const Status sent = agent.agent_start(mail, &ticket, kOnlyConnected);
    if (sent == Status::ok) agent.agent_abandon(ticket, nullptr, 0);
    return sent;
}

// Marks this end as closed in the segment of kJoined, for the other end, which is connected or will be.
void leave_at_once(Mail& mail, const kagent::Joined& joined) {
    if (mail.descriptors.empty() || joined.side > 1 || joined.segment_bytes != sizeof(ConnectionSegment))
        return;
    Joint joint;
    joint.segment =
        Segment::map(std::move(mail.descriptors[0]), sizeof(ConnectionSegment), Segment::Access::read_write);
    if (!joint.segment.valid() || joint.shared()->header.magic != kSegmentMagic ||
        joint.shared()->header.version != kLayoutVersion)
        return;
    joint.shared()->ends[joined.side].closed.store(1, std::memory_order_seq_cst);
}

// Undoes an answer that came after its attempt had ended, so that the other end does not stay connected to nothing.
// `to_be_confirmed`: it was a request, and the acceptor is not connected yet. An agent that cannot be told has ended,
// and what it knew with it.
void undo(UserAgent& agent, Mail& answer, uint64_t context_id, bool to_be_confirmed) {
    kagent::Incoming incoming;
    kagent::Joined joined;
    if (answer.type() == Type::kIncoming && answer.get(&incoming)) {
        (void)tell(agent, Type::kConnReject, context_id, incoming.incoming);
    } else if (answer.type() == Type::kJoined && answer.get(&joined)) {
        VIADUCT_LOG(warn, "paramnet",
                    "connecting: the agent's answer came too late: the connection is given up");
        if (to_be_confirmed) {
            (void)tell(agent, Type::kConnReject, context_id, joined.connection_id);
        } else {
            leave_at_once(answer, joined);
        }
    }
}

void undo_request(UserAgent& agent, Mail& answer, uint64_t context_id) {
    undo(agent, answer, context_id, true);
}
void undo_other(UserAgent& agent, Mail& answer, uint64_t context_id) {
    undo(agent, answer, context_id, false);
}

// Checks kJoined and maps its segment and the peer's memory. On failure nothing stays mapped.
Status map_joint(const ConnectOp& op, const kagent::Joined& joined, Mail& mail, Joint* out) {
    if (mail.descriptors_lost) {
        VIADUCT_LOG(error, "paramnet", "connecting: no descriptors are left for what the agent sends (ulimit -n)");
        return Status::out_of_resources;
    }
    if (mail.descriptors.empty() || joined.side > 1 ||
        joined.segment_bytes != sizeof(ConnectionSegment) || joined.peer_endpoint_words[kEndSlot] >= kMaxVi ||
        joined.remote.discriminator_len > kMaxDiscriminator)
        return Status::broken;
    Joint joint;
    joint.segment =
        Segment::map(std::move(mail.descriptors[0]), sizeof(ConnectionSegment), Segment::Access::read_write);
    if (!joint.segment.valid()) return Status::out_of_resources;
    const SegmentHeader header = joint.shared()->header;
    if (header.magic != kSegmentMagic || header.version != kLayoutVersion) {
        VIADUCT_LOG(
            error, "paramnet",
            "the running agent lays out shared memory by version %u, this library by version %u: an agent of "
            "another release serves here; it leaves when its last program does (or end it), and the next one "
            "fits",
            header.version, kLayoutVersion);
        return Status::version;
    }
    joint.side = joined.side;
    joint.peer_slot = joined.peer_endpoint_words[kEndSlot];
    joint.peer = acquire_peer(*op.nic, joined, mail);
    if (joint.peer == nullptr) {
        // The other end may be connected already: it sees that this end has closed.
        joint.shared()->ends[joint.side].closed.store(1, std::memory_order_seq_cst);
        return Status::out_of_resources;
    }
    *out = std::move(joint);
    return Status::ok;
}

// Binds the endpoint to the connection that the agent has made.
Status attach(ConnectOp& op, Mail& mail) {
    kagent::Joined joined;
    if (!mail.get(&joined)) return Status::broken;
    Joint joint;
    if (const Status mapped = map_joint(op, joined, mail, &joint); mapped != Status::ok) {
        // After a request the acceptor waits for the confirmation; in all other cases the other end is connected.
        if (op.kind == ConnectOp::request) {
            (void)tell(*op.nic->agent, Type::kConnReject, op.nic->context_id, joined.connection_id);
        } else {
            leave_at_once(mail, joined);
        }
        return mapped;
    }
    introduce(op, joint);
    bind(*op.vi->endpoint, std::move(joint));
    if (op.kind == ConnectOp::request && !confirm(op, joined.connection_id)) {
        // If the confirmation arrived nevertheless, the acceptor sees that this end has closed.
        const std::scoped_lock both(op.vi->recv.lock, op.vi->send.lock);
        disconnect(*op.vi);
        return Status::timeout;
    }
    op.result.remote = joined.remote;
    op.result.remote_traits = joined.traits;
    return Status::ok;
}

Status take_incoming(ConnectOp& op, const Mail& mail) {
    kagent::Incoming incoming;
    if (!mail.get(&incoming) || incoming.remote.discriminator_len > kMaxDiscriminator) return Status::broken;
    op.result.incoming = incoming.incoming;
    op.result.remote = incoming.remote;
    op.result.remote_traits = incoming.traits;
    return Status::ok;
}

Status take_answer(ConnectOp& op, Mail& mail) {
    if (mail.type() == Type::kIncoming && op.kind == ConnectOp::listen)
        return op.decide(take_incoming(op, mail));
    if (mail.type() == Type::kJoined && op.kind != ConnectOp::listen) return op.decide(attach(op, mail));
    kagent::Error error;
    if (mail.type() == Type::kError && mail.get(&error) &&
        error.status > static_cast<int32_t>(Status::not_done) &&
        error.status <= static_cast<int32_t>(Status::mismatch_qos)) {
        const auto status = static_cast<Status>(error.status);
        // Logged, because the return codes of the calls do not distinguish these causes from others.
        if (status == Status::out_of_resources || (status == Status::rejected && op.kind == ConnectOp::accept))
            VIADUCT_LOG(warn, "paramnet", "connecting: the agent says: %s", std::string(text_of(error.text)).c_str());
        return op.decide(status);
    }
    return op.decide(Status::broken);
}

// The agent died, and the next one does not have this attempt (spec/architecture 2). A wait or a request is sent again;
// an accept fails, because its incoming request is lost. A caller that only polls (`deadline` is over) does not wait
// for the next agent to start: not_done, and its next call continues.
Status start_over(ConnectOp& op, Deadline deadline) {
    if (op.kind == ConnectOp::accept) return op.decide(Status::timeout);
    op.deaths = now_ns() - op.sent < kSoonNs ? op.deaths + 1 : 1;
    if (op.deaths > kMostDeaths) return op.decide(Status::broken);
    if (op.kind != ConnectOp::listen) {
        kagent::ConnRequest body;
        if (!op.mail.get(&body)) return op.decide(Status::broken);
        body.timeout_ms = timeout_for(op.deadline);
        if (body.timeout_ms == 0) return op.decide(Status::timeout);
        op.mail.set(body);
    }
    const bool looks = remaining_ns(deadline) == 0;
    const Status sent = send_off(op, looks ? std::min(deadline, op.deadline) : op.deadline);
    if (sent != Status::ok && !(sent == Status::timeout && looks)) return op.decide(sent);
    return Status::not_done;
}

}  // namespace

Status listen(NicContext* nic, const EndAddress& local, Deadline deadline, ConnectOp** out) {
    auto op = new_op(ConnectOp::listen, nic, nullptr);
    if (!op) return Status::out_of_resources;
    op->deadline = deadline;
    kagent::ConnWait body;
    body.context_id = nic->context_id;
    body.local = local;
    op->mail = Mail::of(Type::kConnWait, body);
    return begin(std::move(op), out);
}

Status request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
               const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    return begin_request(ConnectOp::request, Type::kConnRequest, nic, vi, local, remote, traits, deadline,
                         out);
}

Status peer_request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
                    const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    return begin_request(ConnectOp::peer, Type::kConnPeer, nic, vi, local, remote, traits, deadline, out);
}

Status accept(NicContext* nic, uint64_t incoming, ViCore& vi, const ViTraits& traits, ConnectOp** out) {
    auto op = new_op(ConnectOp::accept, nic, &vi);
    if (!op) return Status::out_of_resources;
    op->traits = traits;
    kagent::ConnAccept body;
    body.context_id = nic->context_id;
    body.incoming = incoming;
    body.traits = traits;
    body.endpoint_words[kEndSlot] = vi.slot;
    op->mail = Mail::of(Type::kConnAccept, body);
    return begin(std::move(op), out);
}

Status reject(NicContext* nic, uint64_t incoming) {
    // The answer would say whether the requester still waits, which the caller does not need. Waiting for it would cost
    // a server that rejects many requests a switch of processes for each.
    return tell(*nic->agent, Type::kConnReject, nic->context_id, incoming);
}

Status connect_await(ConnectOp* op, Deadline deadline, ConnectResult* result) {
    while (!op->decided) {
        Mail answer;
        const Status waited = op->nic->agent->agent_await(op->ticket, deadline, &answer);
        if (waited == Status::ok) {
            (void)take_answer(*op, answer);  // op->result has it
        } else if (waited == Status::not_done) {
            return Status::not_done;
        } else {
            if (start_over(*op, deadline) == Status::not_done && remaining_ns(deadline) == 0) return Status::not_done;
        }
    }
    *result = op->result;
    return op->result.status;
}

Status connect_finish(ConnectOp* op, ConnectResult* result) {
    const std::unique_ptr<ConnectOp> owned(op);
    UserAgent& agent = *op->nic->agent;
    if (!op->decided) {
        // The agent answers a cancellation after all it has answered before. So when that answer is here, the answer to
        // the attempt is here too, if there is one.
        uint32_t ticket = 0;
        const Mail cancel = Mail::of(Type::kCancel, kagent::Cancel{op->ticket, 0});
        Mail answer;
        if (agent.agent_start(cancel, &ticket, kOnlyConnected) == Status::ok &&
            agent.agent_await(ticket, now_ns() + kCourtesyNs, &answer) == Status::not_done)
            agent.agent_abandon(ticket, nullptr, 0);
        if (agent.agent_await(op->ticket, now_ns(), &answer) == Status::ok) {
            (void)take_answer(*op, answer);  // op->result has it
        } else {
            // A slow agent may have decided nevertheless; its answer is then undone when it comes.
            agent.agent_abandon(op->ticket, op->kind == ConnectOp::request ? undo_request : undo_other,
                                op->nic->context_id);
            (void)op->decide(Status::timeout);
        }
    }
    *result = op->result;
    return op->result.status;
}

}  // namespace paramnet
}  // namespace viaduct
