// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/protocol/stream.hpp"

#include <algorithm>
#include <chrono>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::stream {

namespace {

// What an unexpected long message holds.
struct Start {
    Connection* connection;
    size_t length;
    reqaddr_t sreq;
};

constexpr uint8_t kReplyDirect = 1;  // flags of a reply: the memory may be written, by what follows

Transfer* transfer_of(const mpip_req_t* req) { return static_cast<Transfer*>(req->r_data); }

}  // namespace

int Module::fsend(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                  mpip_comm_t* comm, int mode) {
    Connection* c = connection_of(proc);
    const size_t bytes = adi::bytes_of(count, type);
    const bool contiguous = type == nullptr || (type->d_flags & MPIP_TYPE_CONTIG) != 0;
    if (contiguous && bytes <= eager_limit(*c) && (mode & MPIP_MODE_SYNC) == 0 && !c->lost &&
        !c->envelopes_only && !blocked(*c)) {
        Frame frame = {};
        frame.type = FrameType::eager;
        frame.bytes = static_cast<uint32_t>(bytes);
        frame.context = comm->c_sndctxt;
        frame.tag = tag;
        frame.rank = comm->c_rank;
        frame.length = bytes;
        if (put(*c, frame, buf, nullptr, 0)) {
            ++adi::counters[number_].mc_eager;
            return MPIP_SUCCESS;
        }
    }
    if ((mode & MPIP_MODE_TRY) != 0) return MPIP_AGAIN;
    return adi::blocking_send(proc, buf, count, type, tag, comm, mode);
}

// One request off the queue; false: it has to wait.
bool Module::start(Connection& c, mpip_req_t* req) {
    Frame frame = {};
    frame.context = req->r_ctxt;
    frame.tag = req->r_tag;
    frame.rank = req->r_rank;
    frame.length = req->r_bytes;
    if ((req->r_mode & MPIP_MODE_SYNC) == 0 && !c.envelopes_only && req->r_bytes <= eager_limit(c)) {
        frame.type = FrameType::eager;
        frame.bytes = static_cast<uint32_t>(req->r_bytes);
        if (!put(c, frame, nullptr, req, 0)) return false;
        ++adi::counters[number_].mc_eager;
        mpip_deqsend(c.proc);
        req->r_length = static_cast<int64_t>(req->r_bytes);
        mpip_req_done(req);
        return true;
    }
    ids_.add(req);
    frame.type = FrameType::request;
    frame.flags = static_cast<uint8_t>(req->r_mode & 0xff);
    frame.sreq = req->r_id;
    if (!put(c, frame, nullptr, nullptr, 0)) {
        ids_.remove(req);
        return false;
    }
    ++adi::counters[number_].mc_long;
    req->r_data = new Transfer{req, &c, false, false, 0, req->r_bytes, 0, req->r_bytes};
    req->r_state = MPIP_REQ_STARTED;
    mpip_deqsend(c.proc);
    prefetch(c, *transfer_of(req));
    return true;
}

void Module::control(Connection& c, const Frame& frame, std::vector<char> payload) {
    if (c.lost) return;
    if (!c.waiting.empty() || !put(c, frame, payload.data(), nullptr, 0))
        c.waiting.push_back({frame, std::move(payload)});
}

// The next piece of the first long message; false: it has to wait.
bool Module::push_long(Connection& c) {
    Transfer* t = c.sending.front();
    Frame frame = {};
    frame.type = FrameType::data;
    frame.bytes = static_cast<uint32_t>(std::min(c.piece, t->length - t->offset));
    frame.rreq = t->peer_request;
    if (!put(c, frame, nullptr, t->request, t->offset)) return false;
    t->offset += frame.bytes;
    if (t->offset < t->length) return true;
    c.sending.pop_front();
    finish_send(t);
    return true;
}

void Module::finish_send(Transfer* t) {
    mpip_req_t* req = t->request;
    forget(req);
    req->r_length = static_cast<int64_t>(req->r_bytes);
    mpip_req_done(req);
}

void Module::placed_all(Transfer* t) { finish_send(t); }

void Module::finish_receive(Transfer* t) {
    mpip_req_t* req = t->request;
    const size_t message = t->message;
    forget(req);
    mpip_req_received(req, message);
    mpip_req_done(req);
}

int Module::push(Connection& c) {
    int done = 0;
    if (c.lost) return 0;
    if (!c.ready) {
        if (blocked(c)) reach_out(c);
        return 0;
    }
    while (!c.waiting.empty() &&
           put(c, c.waiting.front().frame, c.waiting.front().payload.data(), nullptr, 0)) {
        c.waiting.pop_front();
        ++done;
    }
    while (c.waiting.empty() && !c.lost && !c.sending.empty() && push_long(c)) ++done;
    while (c.waiting.empty() && !c.lost && c.proc->p_sendhead != nullptr && start(c, c.proc->p_sendhead))
        ++done;
    return done;
}

void Module::queued_send(process_t* proc) {
    Connection* c = connection_of(proc);
    if (!c->lost) {
        push(*c);
        return;
    }
    while (proc->p_sendhead != nullptr) adi::end_request(mpip_deqsend(proc), MPIP_ERR_PROC_FAILED);
}

void Module::forget(mpip_req_t* req) {
    ids_.remove(req);
    Transfer* t = transfer_of(req);
    if (t->direct != nullptr) dropped(*t);
    delete t;
    req->r_data = nullptr;
}

void Module::begin_receive(Connection& c, mpip_req_t* req, size_t message, reqaddr_t sreq) {
    const size_t length = std::min(message, req->r_bytes);
    req->r_proc = c.proc;
    req->r_state |= MPIP_REQ_STARTED;
    Frame frame = {};
    frame.type = FrameType::reply;
    frame.length = length;
    frame.sreq = sreq;
    if (length == 0) {
        control(c, frame);
        mpip_req_received(req, message);
        mpip_req_done(req);
        return;
    }
    ids_.add(req);
    auto* t = new Transfer{req, &c, true, false, sreq, length, 0, message};
    req->r_data = t;
    frame.rreq = req->r_id;
    std::vector<char> how;
    if (offer(c, *t, how)) {
        frame.flags = kReplyDirect;
        frame.bytes = static_cast<uint32_t>(how.size());
    }
    control(c, frame, std::move(how));
}

int Module::uirecv(unexmsg_t* message, mpip_req_t* req) {
    const std::unique_ptr<Start> start(static_cast<Start*>(message->um_data));
    message->um_data = nullptr;
    if (start->connection->lost) {
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    } else {
        begin_receive(*start->connection, req, start->length, start->sreq);
    }
    return MPIP_SUCCESS;
}

void Module::ufree(unexmsg_t* message) {
    delete static_cast<Start*>(message->um_data);
    message->um_data = nullptr;
}

Transfer* Module::named(Connection& c, reqaddr_t name, bool send) {
    mpip_req_t* req = ids_.find(name);
    if (req == nullptr || req->r_proc != c.proc || ((req->r_flags & MPIP_REQ_SEND) != 0) != send)
        return nullptr;
    return transfer_of(req);
}

bool Module::incoming_reply(Connection& c, const Frame& frame, const void* payload) {
    Transfer* t = named(c, frame.sreq, true);
    if (t == nullptr || t->replied || frame.length > t->length) return false;
    t->replied = true;
    t->length = frame.length;
    t->peer_request = frame.rreq;
    if (t->length == 0) {
        finish_send(t);
        return true;
    }
    if ((frame.flags & kReplyDirect) != 0) return take_up(c, *t, payload, frame.bytes);
    if (frame.bytes != 0) return false;
    if (t->direct != nullptr) dropped(*t);
    c.sending.push_back(t);
    return true;
}

bool Module::incoming_placed(Connection& c, const Frame& frame) {
    Transfer* t = named(c, frame.rreq, false);
    if (t == nullptr || t->direct == nullptr || frame.length == 0 || frame.length > t->length - t->offset)
        return false;
    t->offset += frame.length;
    if (t->offset == t->length) finish_receive(t);
    return true;
}

bool Module::incoming_data(Connection& c, const Frame& frame, const void* payload) {
    Transfer* t = named(c, frame.rreq, false);
    if (t == nullptr || frame.bytes == 0 || frame.bytes > t->length - t->offset) return false;
    mpip_req_deliver(t->request, t->offset, payload, frame.bytes);
    t->offset += frame.bytes;
    if (t->offset == t->length) finish_receive(t);
    return true;
}

int Module::cancel_send(mpip_req_t* req) {
    Transfer* t = ids_.find(req->r_id) == req ? transfer_of(req) : nullptr;
    if (t == nullptr || t->replied || t->cancelling) return MPIP_SUCCESS;
    t->cancelling = true;
    Frame frame = {};
    frame.type = FrameType::cancel;
    frame.sreq = req->r_id;
    control(*t->connection, frame);
    return MPIP_SUCCESS;
}

bool Module::incoming_cancel_reply(Connection& c, const Frame& frame) {
    Transfer* t = named(c, frame.sreq, true);
    if (t == nullptr || frame.flags == 0) return true;  // delivered, or about to be
    if (!t->cancelling || t->replied) return false;
    mpip_req_t* req = t->request;
    forget(req);
    req->r_state |= MPIP_REQ_CANCELLED;
    mpip_req_done(req);
    return true;
}

bool Module::incoming(Connection& c, const Frame& frame, const void* payload) {
    const bool may_carry =
        frame.type == FrameType::eager || frame.type == FrameType::data || frame.type == FrameType::reply;
    if (frame.bytes != 0 && !may_carry) return false;
    mpip_req_t* match = nullptr;
    switch (frame.type) {
        case FrameType::eager: {
            if (frame.length != frame.bytes) return false;
            const envelope env = {frame.context,
                                  MPIP_MODE_STANDARD,
                                  frame.rank,
                                  frame.tag,
                                  static_cast<int64_t>(frame.length),
                                  0,
                                  0};
            if (mpip_up.arrived(c.proc, &env, payload, frame.bytes, nullptr, &match) == MPIP_IN_MATCHED) {
                mpip_req_deliver_all(match, payload, frame.bytes);
            }
            return true;
        }
        case FrameType::request: {
            if (frame.length > INT64_MAX) return false;
            const envelope env = {frame.context,
                                  (frame.flags & (MPIP_MODE_SYNC | MPIP_MODE_READY)) | MPIP_MODE_RTS,
                                  frame.rank,
                                  frame.tag,
                                  static_cast<int64_t>(frame.length),
                                  frame.sreq,
                                  0};
            auto* start = new Start{&c, frame.length, frame.sreq};
            if (mpip_up.arrived(c.proc, &env, nullptr, 0, start, &match) == MPIP_IN_MATCHED) {
                delete start;
                begin_receive(c, match, frame.length, frame.sreq);
            } else {
                ++adi::counters[number_].mc_unexpected;
            }
            return true;
        }
        case FrameType::reply:
            return incoming_reply(c, frame, payload);
        case FrameType::data:
            return incoming_data(c, frame, payload);
        case FrameType::placed:
            return incoming_placed(c, frame);
        case FrameType::cancel: {
            unexmsg_t* message = frame.sreq == 0 ? nullptr : mpip_up.withdraw(c.proc, frame.sreq);
            if (message != nullptr) {
                ufree(message);
                mpip_up.release(message);
            }
            Frame answer = {};
            answer.type = FrameType::cancel_reply;
            answer.flags = message != nullptr ? 1 : 0;
            answer.sreq = frame.sreq;
            control(c, answer);
            return true;
        }
        case FrameType::cancel_reply:
            return incoming_cancel_reply(c, frame);
        case FrameType::closing:
            if (c.goodbye_had) return false;
            c.goodbye_had = true;
            c.proc->p_flags |= MPIP_PROC_LEFT;
            return true;
        case FrameType::envelopes_only:
            c.envelopes_only = frame.flags != 0;
            return true;
    }
    return false;
}

void Module::fail(Connection& c, const char* why) {
    if (c.lost) return;
    c.lost = true;
    cut(c);
    c.proc->p_flags |= MPIP_PROC_TRANSPORTERR;
    c.waiting.clear();
    c.sending.clear();
    for (mpip_req_t* req : ids_.of(c.proc)) {
        forget(req);
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    }
    while (c.proc->p_sendhead != nullptr) adi::end_request(mpip_deqsend(c.proc), MPIP_ERR_PROC_FAILED);
    if (c.goodbye_had) return;
    adi::fail(MPIP_ERR_PROC_FAILED, "process %u is lost: %s", c.rank, why);
    mpip_up.peer_failed(c.proc, MPIP_ERR_PROC_FAILED);
}

void Module::error_request(mpip_req_t* req) {
    if (ids_.find(req->r_id) != req) return;
    fail(*connection_of(req->r_proc),
         "the engine ended one of its requests underway");  // which ends this one too
}

void Module::greeted(Connection& c) {
    if (pressed_) {
        Frame frame = {};
        frame.type = FrameType::envelopes_only;
        frame.flags = 1;
        control(c, frame);
    }
    push(c);
}

void Module::pressure(bool on) {
    pressed_ = on;
    Frame frame = {};
    frame.type = FrameType::envelopes_only;
    frame.flags = on ? 1 : 0;
    for (const auto& c : connections) {
        if (c != nullptr && c->ready) control(*c, frame);
    }
}

bool Module::parted(Connection& c) {
    if (c.lost) return true;
    push(c);
    if (blocked(c)) return false;
    if (!c.ready) return true;  // the two have never talked
    if (!c.goodbye_sent) {
        Frame frame = {};
        frame.type = FrameType::closing;
        c.goodbye_sent = put(c, frame, nullptr, nullptr, 0);
    }
    return c.goodbye_sent && c.goodbye_had && flushed(c);
}

int Module::close(process_t** procs, int count) {
    using Clock = std::chrono::steady_clock;
    std::vector<Connection*> all;
    if (procs == nullptr) {
        for (const auto& c : connections) {
            if (c != nullptr) all.push_back(c.get());
        }
    } else {
        for (int i = 0; i < count; ++i) {
            if ((procs[i]->p_flags & MPIP_PROC_REMOVED) != 0 && procs[i]->p_pm != nullptr) {
                all.push_back(connection_of(procs[i]));
            }
        }
    }
    const long patience = adi::param_number(adi::Param::close_timeout);
    const auto deadline = Clock::now() + std::chrono::seconds(patience);
    int rc = MPIP_SUCCESS;
    for (;;) {
        bool done = true;
        for (Connection* c : all) done = parted(*c) && done;
        if (done) break;
        rc = mpip_up.progress();
        if (rc < 0) return -rc;
        rc = MPIP_SUCCESS;
        if (patience != 0 && Clock::now() >= deadline) {
            rc = adi::fail(MPIP_ERR_OTHER, "not all processes said goodbye within %ld s", patience);
            break;
        }
    }
    for (Connection* c : all) {
        if (!c->lost) cut(*c);
        c->lost = true;
        adi::detach(c->proc);
    }
    return rc;
}

int Module::ping(process_t* proc) {
    Connection* c = connection_of(proc);
    if (c == nullptr) return MPIP_ERR_PROC_FAILED;
    while (!c->ready && !c->lost) {
        reach_out(*c);
        const int rc = mpip_up.progress();
        if (rc < 0) return -rc;
    }
    return c->lost ? MPIP_ERR_PROC_FAILED : MPIP_SUCCESS;
}

}  // namespace viaduct::stream
