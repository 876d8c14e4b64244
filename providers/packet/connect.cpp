// SPDX-License-Identifier: BSD-2-Clause
// Connecting over the wire's own hand-shake. Calls hold no VI lock and wait on the engine's condition; the
// helper thread moves the frames.
#include <unistd.h>

#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::packet {

namespace {

// VIPL waits a little beyond its deadline, so that the wire's own answer arrives in time.
wire::Time wire_deadline(Deadline deadline) { return deadline == kNever ? wire::kNoTime : deadline; }

template <class Begin>
Status begin_attempt(NicContext* nic, ViCore& vi, ConnectOp** out, Begin begin) {
    Engine& engine = *nic->engine;
    Endpoint& ep = *vi.endpoint;
    std::unique_ptr<ConnectOp> op(new (std::nothrow) ConnectOp);
    if (!op) return Status::out_of_resources;
    op->engine = &engine;
    op->ep = &ep;
    const std::scoped_lock lock(engine.mutex);
    if (engine.is_lost()) return Status::broken;
    engine.settle_old(ep);
    ep.op = op.get();
    ep.bound.store(false);
    Status why = Status::out_of_resources;
    wire::LinkId link = 0;
    try {
        link = begin(engine.node(), engine.now(), &why);
        if (link == 0 && why == Status::out_of_resources)
            engine.say_why("the port has no place for one more connection",
                           "disconnect others; those that are over are remembered for half a second");
    } catch (const std::exception&) {
        why = Status::out_of_resources;
    }
    ep.link = link;
    engine.finish_frames();
    engine.wake_helper();
    if (link == 0) {
        ep.op = nullptr;
        return why;
    }
    *out = op.release();
    return Status::ok;
}

// E held. The port does not pass requests on to this process.
void explain_unexpected(Engine& engine) try {
    std::string why, cure;
    engine.port().why_not_expected(&why, &cure);
    engine.say_why(why.c_str(), cure.c_str());
} catch (const std::exception&) {  // the call fails without a reason
}

// E held. A listener waits for one request; when that has ended before it was reported, for another one.
Status begin_listening(ConnectOp& op) {
    Engine& engine = *op.engine;
    op.expected = 0;
    op.listener = 0;
    op.decided = op.used_up = false;
    try {
        op.listener = engine.node().listen(op.local, &op, engine.now());
        op.expected = op.listener != 0 ? engine.port().expect_request(op.local, op.every) : 0;
        if (op.listener == 0)
            engine.say_why("too many calls wait for requests on this port", "wait in fewer threads at a time");
        else if (op.expected == 0)
            explain_unexpected(engine);
    } catch (const std::exception&) {
        op.expected = 0;
    }
    if (op.expected == 0) {
        engine.node().unlisten(op.listener);
        return Status::out_of_resources;
    }
    engine.finish_frames();
    return Status::ok;
}

// E held. A request that did not end the wait may have used up the port's filter. From here on all requests come, and
// so do the copies of that one, or they go to another program that waits.
bool expect_every(ConnectOp& op) {
    FramePort& port = op.engine->port();
    op.every = true;
    port.cancel_expected(std::exchange(op.expected, 0), true);
    try {
        op.expected = port.expect_request(op.local, true);
    } catch (const std::exception&) {  // as where the port has no place
    }
    if (op.expected == 0) explain_unexpected(*op.engine);
    op.engine->finish_frames();
    return op.expected != 0;
}

// E held, and let go meanwhile: what has come behind the request may take it back.
bool has_request(ConnectOp& op, std::unique_lock<BiasedLock>& lock) {
    lock.unlock();
    op.engine->poll();
    lock.lock();
    return op.engine->node().still_waits(op.result.incoming, op.engine->now());
}

}  // namespace

Status listen(NicContext* nic, const EndAddress& local, Deadline deadline, ConnectOp** out) {
    return listen(*nic->engine, local, deadline, out);
}

Status listen(Engine& engine, const EndAddress& local, Deadline deadline, ConnectOp** out) {
    std::unique_ptr<ConnectOp> op(new (std::nothrow) ConnectOp);
    if (!op) return Status::out_of_resources;
    op->engine = &engine;
    // A call with a timeout of zero must get a true answer: it may have
    // reached the port and no further.
    op->engine->poll();
    std::unique_lock lock(op->engine->mutex);
    if (op->engine->is_lost()) return Status::broken;
    op->local = local;
    if (const Status begun = begin_listening(*op); begun != Status::ok) return begun;
    // The same where the engine process keeps them, also at a deadline that is over.
    const int64_t begin = now_ns(), noted = begin + limit_ns(TimeLimit::packet_listen);
    for (const int64_t until = deadline > begin ? std::min(deadline, noted) : noted;
         !op->engine->port().is_known() && !op->decided && now_ns() < until;) {
        lock.unlock();
        op->engine->poll();
        ::usleep(20);
        lock.lock();
    }
    op->engine->wake_helper();
    *out = op.release();
    return Status::ok;
}

Status request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
               const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    return begin_attempt(nic, vi, out, [&](wire::Node& node, wire::Time now, Status*) {
        return node.request(vi.endpoint, local, remote, traits, wire_deadline(deadline), now);
    });
}

Status peer_request(NicContext* nic, ViCore& vi, const EndAddress& local, const EndAddress& remote,
                    const ViTraits& traits, Deadline deadline, ConnectOp** out) {
    const Status begun = begin_attempt(nic, vi, out, [&](wire::Node& node, wire::Time now, Status*) {
        return node.peer_request(vi.endpoint, local, remote, traits, wire_deadline(deadline), now);
    });
    if (begun != Status::ok) return begun;
    Engine& engine = *nic->engine;
    const std::scoped_lock lock(engine.mutex);
    if (vi.endpoint->link != 0) {
        try {
            (*out)->expected = engine.port().expect_peer(local, remote, vi.endpoint->link);
            if ((*out)->expected == 0) explain_unexpected(engine);
        } catch (const std::exception&) {
            (*out)->expected = 0;  // as where the port has no place: the attempt has begun
        }
        engine.finish_frames();
    }
    return Status::ok;
}

Status accept(NicContext* nic, uint64_t incoming, ViCore& vi, const ViTraits& traits, ConnectOp** out) {
    nic->engine->poll();  // a process that was not running takes first what has come, such as copies of the request
    return begin_attempt(nic, vi, out, [&](wire::Node& node, wire::Time now, Status* why) {
        return node.accept(incoming, vi.endpoint, traits, now, why);
    });
}

Status reject(NicContext* nic, uint64_t incoming) {
    const std::scoped_lock lock(nic->engine->mutex);
    nic->engine->node().reject(incoming, nic->engine->now());
    nic->engine->finish_frames();
    return Status::ok;
}

Status connect_await(ConnectOp* op, Deadline deadline, ConnectResult* result) {
    std::unique_lock lock(op->engine->mutex);
    for (;;) {
        if (op->engine->is_lost()) return Status::broken;
        if (op->decided) {
            if (op->ep != nullptr || op->result.status != Status::ok || has_request(*op, lock)) break;
            op->engine->port().cancel_expected(op->expected, true);
            if (const Status begun = begin_listening(*op); begun != Status::ok) return begun;
            continue;
        }
        if (op->ep == nullptr && op->expected != 0 && !op->engine->port().still_expects(op->expected)) {
            explain_unexpected(*op->engine);
            return Status::out_of_resources;
        }
        if (std::exchange(op->used_up, false) && !expect_every(*op)) return Status::out_of_resources;
        const int64_t left = remaining_ns(deadline);
        if (left == 0) return Status::not_done;
        if (left < 0)
            op->engine->changed.wait(lock);
        else
            op->engine->changed.wait_for(lock, std::chrono::nanoseconds(left));
    }
    *result = op->result;
    return op->result.status;
}

Status connect_finish(ConnectOp* op, ConnectResult* result) {
    const std::unique_ptr<ConnectOp> owned(op);
    Engine& engine = *op->engine;
    const std::scoped_lock lock(engine.mutex);
    if (!op->decided) {
        op->result.status = Status::timeout;
        if (op->ep == nullptr) {
            engine.node().unlisten(op->listener);
        } else if (op->ep->link != 0) {
            engine.node().disconnect(op->ep->link, engine.now());
            op->ep->link = 0;
            engine.finish_frames();
        }
    }
    if (op->expected != 0) {
        engine.port().cancel_expected(op->expected, op->result.status != Status::ok);
        engine.finish_frames();
    }
    if (op->ep != nullptr) op->ep->op = nullptr;
    *result = op->result;
    return op->result.status;
}

}  // namespace viaduct::packet
