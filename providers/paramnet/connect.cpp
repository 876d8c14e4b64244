// SPDX-License-Identifier: BSD-2-Clause
// See connect.hpp; Joined in viaduct/kagent.hpp has the order of events.
#include "providers/paramnet/connect.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/shm/fd.hpp"
#include "core/text/printable.hpp"
#include "providers/paramnet/joined.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/outcome.hpp"
#include "providers/paramnet/progress.hpp"

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
    uint32_t deaths = 0;    // of agents, each within TimeLimit::paramnet_crash of being sent it
    // kJoined is here and the endpoint is bound to the connection; what the agent answers to `ticket` tells whether the
    // other end will have it, too.
    bool bound = false;
    bool decided = false;
    uint64_t connection = 0;  // while bound
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

// A request may itself be what makes agents crash. After so many crashes, each within TimeLimit::paramnet_crash of
// sending it, the attempt fails.
constexpr uint32_t kMostDeaths = 8;

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

// Sends the agent a message whose answer is not waited for.
Status tell(UserAgent& agent, Type type, uint64_t context_id, uint64_t incoming) try {
    uint32_t ticket = 0;
    const Mail mail = Mail::of(type, kagent::IncomingRef{context_id, incoming});
    const Status sent = agent.agent_start(mail, &ticket, kOnlyConnected);
    if (sent == Status::ok) agent.agent_abandon(ticket, nullptr, 0);
    return sent;
} catch (const std::exception&) {
    return Status::out_of_resources;
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

void unbind(ConnectOp& op) {
    const std::scoped_lock both(op.vi->recv.lock, op.vi->send.lock);
    disconnect(*op.vi);
    op.bound = false;
}

// Ends the attempt as both ends agree. `mine`: what this end decides if the other one has not; `why`: the result if
// this end gives up. not_done: the next agent is to be asked.
Status conclude(ConnectOp& op, Outcome mine, Status why) {
    const Outcome outcome = decide(*op.vi->endpoint->joint.shared(), mine);
    if (outcome == Outcome::connected) return op.decide(Status::ok);
    unbind(op);
    if (op.kind == ConnectOp::accept) return op.decide(Status::timeout);  // the requester has left, or asks anew
    if (outcome == Outcome::asked_anew) return Status::not_done;
    if (mine == Outcome::given_up) return op.decide(why);
    return op.decide(op.kind == ConnectOp::peer ? Status::rejected : Status::timeout);
}

Status confirm(ConnectOp& op) try {
    const Mail mail = Mail::of(Type::kConnConfirm, kagent::ConnConfirm{op.connection});
    return op.nic->agent->agent_start(mail, &op.ticket, kOnlyConnected);
} catch (const std::exception&) {
    return Status::out_of_resources;
}

// Binds the endpoint to the connection that the agent has made. An acceptor is connected then; a requester confirms; a
// peer waits for the agent's second answer.
Status attach(ConnectOp& op, Mail& mail) {
    kagent::Joined joined;
    if (!mail.get(&joined)) return op.decide(Status::broken);
    UserAgent& agent = *op.nic->agent;
    Joint joint;
    if (const Status mapped = map_joint(*op.nic, joined, mail, &joint); mapped != Status::ok) {
        // After a request the acceptor waits for the confirmation; in all other cases the other end is told, too.
        if (op.kind == ConnectOp::request) {
            (void)tell(agent, Type::kConnReject, op.nic->context_id, joined.connection_id);
        } else {
            leave_at_once(mail, joined);
            if (joined.told_later != 0) agent.agent_abandon(op.ticket, nullptr, 0);
        }
        return op.decide(mapped);
    }
    introduce(*op.nic, *op.vi, op.traits, joint);
    bind(*op.vi->endpoint, std::move(joint));
    op.bound = true;
    op.result.remote = joined.remote;
    op.result.remote_traits = joined.traits;
    op.connection = joined.connection_id;
    if (op.kind == ConnectOp::accept) return conclude(op, Outcome::connected, Status::ok);
    if (op.kind != ConnectOp::request) return Status::not_done;
    const Status confirmed = confirm(op);
    if (confirmed == Status::ok) return Status::not_done;
    if (confirmed != Status::out_of_resources) return conclude(op, Outcome::asked_anew, Status::ok);
    // The agent lives, and the acceptor waits for the confirmation.
    const Status decided = conclude(op, Outcome::given_up, confirmed);
    if (decided != Status::ok) (void)tell(agent, Type::kConnReject, op.nic->context_id, op.connection);
    return decided;
}

Status take_incoming(ConnectOp& op, const Mail& mail) {
    kagent::Incoming incoming;
    if (!mail.get(&incoming) || incoming.remote.discriminator_len > kMaxDiscriminator) return Status::broken;
    op.result.incoming = incoming.incoming;
    op.result.remote = incoming.remote;
    op.result.remote_traits = incoming.traits;
    return Status::ok;
}

// What an error of the agent says.
Status refusal(const ConnectOp& op, const Mail& mail) {
    kagent::Error error;
    if (mail.type() != Type::kError || !mail.get(&error) || error.status <= static_cast<int32_t>(Status::not_done) ||
        error.status > static_cast<int32_t>(Status::mismatch_qos))
        return Status::broken;
    const auto status = static_cast<Status>(error.status);
    char words[sizeof error.text];
    copy_printable(error.text, words);
    if (status == Status::no_match && op.kind == ConnectOp::request)
        op.nic->agent->explain(words,
                               "start the other end first, or try again; compare host address and discriminator with "
                               "what it waits at (vipinfo --waiters)");
    if (status == Status::out_of_resources)
        op.nic->agent->explain(words, "close what is not needed, or raise the limit that is named");
    // Logged, because the return codes of the calls do not distinguish these causes from others.
    if (status == Status::out_of_resources || (status == Status::rejected && op.kind == ConnectOp::accept)) {
        VIADUCT_LOG(warn, "paramnet", "connecting: the agent says: %s", words);
    }
    return status;
}

// Decided, or not_done: there is more to come, or, when the op is not bound, the next agent is to be asked.
Status take_answer(ConnectOp& op, Mail& mail) {
    if (op.bound) {
        if (mail.type() == Type::kDone) return conclude(op, Outcome::connected, Status::ok);
        const Status why = refusal(op, mail);
        // To another agent the connection means nothing: the one that has made it has ended.
        return conclude(op, why == Status::invalid ? Outcome::asked_anew : Outcome::given_up, why);
    }
    if (mail.type() == Type::kIncoming && op.kind == ConnectOp::listen)
        return op.decide(take_incoming(op, mail));
    if (mail.type() == Type::kJoined && op.kind != ConnectOp::listen) return attach(op, mail);
    return op.decide(refusal(op, mail));
}

// The agent died, and the next one does not have this attempt (spec/architecture 2). A wait or a request is sent again;
// an accept fails, because its incoming request is lost. A caller that only polls (`deadline` is over) does not wait
// for the next agent to start, nor for the one after it: not_done, and its next call continues.
Status start_over(ConnectOp& op, Deadline deadline) {
    if (op.kind == ConnectOp::accept) return op.decide(Status::timeout);
    op.deaths = now_ns() - op.sent < limit_ns(TimeLimit::paramnet_crash) ? op.deaths + 1 : 1;
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
    if (sent != Status::ok && !(looks && (sent == Status::timeout || sent == Status::broken))) return op.decide(sent);
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
        if (waited == Status::not_done) return Status::not_done;
        if (waited == Status::ok) {
            (void)take_answer(*op, answer);  // op->result has it
            if (op->decided || op->bound) continue;
        } else if (op->bound && conclude(*op, Outcome::asked_anew, Status::ok) != Status::not_done) {
            continue;
        }
        if (start_over(*op, deadline) == Status::not_done && remaining_ns(deadline) == 0) return Status::not_done;
    }
    *result = op->result;
    return op->result.status;
}

namespace {

// Without memory the attempt is not cancelled; what the agent still answers is undone.
void cancel(const ConnectOp& op) try {
    UserAgent& agent = *op.nic->agent;
    uint32_t ticket = 0;
    Mail answer;
    const Mail mail = Mail::of(Type::kCancel, kagent::Cancel{op.ticket, 0});
    if (agent.agent_start(mail, &ticket, kOnlyConnected) == Status::ok &&
        agent.agent_await(ticket, now_ns() + limit_ns(TimeLimit::paramnet_prompt_answer), &answer) == Status::not_done)
        agent.agent_abandon(ticket, nullptr, 0);
} catch (const std::exception&) {
}

}  // namespace

Status connect_finish(ConnectOp* op, ConnectResult* result) {
    const std::unique_ptr<ConnectOp> owned(op);
    UserAgent& agent = *op->nic->agent;
    Mail answer;
    if (!op->decided && !op->bound) {
        // The agent answers a cancellation after all it has answered before. So when that answer is here, the answer to
        // the attempt is here too, if there is one.
        cancel(*op);
        if (agent.agent_await(op->ticket, now_ns(), &answer) == Status::ok) {
            (void)take_answer(*op, answer);  // op->result has it
        } else {
            // A slow agent may have decided nevertheless; its answer is then undone when it comes.
            agent.agent_abandon(op->ticket, op->kind == ConnectOp::request ? undo_request : undo_other,
                                op->nic->context_id);
        }
    }
    if (op->bound && !op->decided) {
        const Status waited =
            agent.agent_await(op->ticket, now_ns() + limit_ns(TimeLimit::paramnet_prompt_answer), &answer);
        if (waited == Status::not_done) agent.agent_abandon(op->ticket, nullptr, 0);
        if (waited == Status::ok) {
            (void)take_answer(*op, answer);
        } else if (conclude(*op, Outcome::given_up, Status::timeout) != Status::ok && op->kind == ConnectOp::request) {
            (void)tell(agent, Type::kConnReject, op->nic->context_id, op->connection);
        }
    }
    if (!op->decided) (void)op->decide(Status::timeout);
    *result = op->result;
    return op->result.status;
}

}  // namespace paramnet
}  // namespace viaduct
