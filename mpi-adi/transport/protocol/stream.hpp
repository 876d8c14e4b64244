// SPDX-License-Identifier: BSD-2-Clause
// What shm and tcp share: a protocol for ways that are reliable, ordered and slow a sender down by themselves
// (no credits): a message whole in one frame, or an envelope, a reply when it is matched, and pieces. The way
// itself is put() of the derived class; whoever reads calls incoming(). Under the engine's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/adi/request_ids.hpp"

namespace viaduct::stream {

enum class FrameType : uint8_t {
    eager = 1,           // a whole message
    request = 2,         // envelope of a long one
    reply = 3,           // it is matched
    data = 4,            // a piece of it
    cancel = 5,          // the sender wants it back
    cancel_reply = 6,    // flags: 1 it is taken back
    closing = 7,         // nothing more comes
    envelopes_only = 8,  // flags: 1 no eager data please, 0 over
    placed = 9,          // `length` more bytes of it have been written into the receiver's memory
};

// As it travels, little-endian. 48 bytes.
struct Frame {
    FrameType type;
    uint8_t flags;
    uint16_t number;  // tcp: counts the frames of a connection
    uint32_t bytes;   // of payload behind it
    uint64_t context;
    int32_t tag;
    int32_t rank;
    uint64_t length;  // of the message; reply: how much of it there is room for
    uint64_t sreq;
    uint64_t rreq;
};
static_assert(sizeof(Frame) == 48);

struct Connection;

// A long message underway.
struct Transfer {
    mpip_req_t* request;
    Connection* connection;
    bool replied;
    bool cancelling;
    reqaddr_t peer_request;
    size_t length;           // to be moved
    size_t offset;           // moved
    size_t message;          // receiver: of the whole message
    void* direct = nullptr;  // of a module that places long messages itself
};

// A control frame that found the way full, with what goes behind it.
struct Waiting {
    Frame frame;
    std::vector<char> payload;
};

struct Connection {
    virtual ~Connection() = default;
    process_t* proc = nullptr;
    uint32_t rank = 0;
    size_t piece = 0;    // most payload of one frame: what both ends take
    bool ready = false;  // frames can go
    bool lost = false;
    bool envelopes_only = false;
    bool goodbye_sent = false;
    bool goodbye_had = false;
    std::deque<Waiting> waiting;    // in order
    std::deque<Transfer*> sending;  // long messages, first come first served
};

class Module {
public:
    explicit Module(int number) : number_(number), ids_(number) {}
    virtual ~Module() = default;

    // --- entries ---
    int fsend(process_t*, const void* buf, size_t count, const mpip_type_t*, int tag, mpip_comm_t*, int mode);
    void queued_send(process_t*);
    int uirecv(unexmsg_t*, mpip_req_t*);
    void ufree(unexmsg_t*);
    int cancel_send(mpip_req_t*);
    void error_request(mpip_req_t*);
    void pressure(bool on);
    int close(process_t** procs, int count);
    int ping(process_t*);

    // Pushes what waits; how much was pushed.
    int push(Connection& c);
    bool blocked(const Connection& c) const {
        return !c.waiting.empty() || !c.sending.empty() || c.proc->p_sendhead != nullptr;
    }
    // A frame with its payload is here. False: it cannot be, the connection has to end.
    bool incoming(Connection& c, const Frame& frame, const void* payload);
    void fail(Connection& c, const char* why);

    std::vector<std::unique_ptr<Connection>> connections;  // by world rank

protected:
    // Everything or nothing: a frame and `bytes` of payload, from memory or out of a request from `offset`
    // on.
    virtual bool put(Connection& c, const Frame& frame, const void* payload, const mpip_req_t* source,
                     size_t offset) = 0;
    // Frees what the way holds. The connection is lost or closed.
    virtual void cut(Connection& c) = 0;
    // Something waits for a connection that is not ready: begins to make it.
    virtual void reach_out(Connection&) {}
    // Nothing that put() took still lies in this process.
    virtual bool flushed(const Connection&) const { return true; }
    // The connection has become ready.
    void greeted(Connection& c);

    // A way that writes into the receiver's memory itself may do so with long messages. Receiver: makes the
    // memory of the transfer ready and tells how to reach it behind the reply; false: as frames, please.
    virtual bool offer(Connection&, Transfer&, std::vector<char>&) { return false; }
    // Sender: the envelope is away, and until the answer is here there is time to make the memory ready. It
    // may turn out to be in vain: then dropped() tells.
    virtual void prefetch(Connection&, Transfer&) {}
    // Sender: takes the transfer over; each part written is told by a frame `placed`, and placed_all() ends
    // it. False: the offer cannot be, the connection has to end.
    virtual bool take_up(Connection&, Transfer&, const void*, size_t) { return false; }
    // The transfer is done or never will be, or what was prefetched for it is not needed.
    virtual void dropped(Transfer&) {}
    void placed_all(Transfer*);
    std::vector<mpip_req_t*> requests_of(const process_t* proc) const { return ids_.of(proc); }

    int number_;
    size_t eager_limit_ = 0;
    size_t piece_ = 0;  // what this end takes

private:
    void control(Connection& c, const Frame& frame, std::vector<char> payload = {});
    bool push_long(Connection& c);
    bool start(Connection& c, mpip_req_t* req);
    void begin_receive(Connection& c, mpip_req_t* req, size_t message, reqaddr_t sreq);
    void forget(mpip_req_t* req);
    Transfer* named(Connection& c, reqaddr_t name, bool send);
    bool incoming_reply(Connection& c, const Frame& frame, const void* payload);
    bool incoming_placed(Connection& c, const Frame& frame);
    void finish_receive(Transfer* t);
    void finish_send(Transfer* t);
    bool incoming_data(Connection& c, const Frame& frame, const void* payload);
    bool incoming_cancel_reply(Connection& c, const Frame& frame);
    bool parted(Connection& c);
    size_t eager_limit(const Connection& c) const { return std::min(eager_limit_, c.piece); }

    bool pressed_ = false;  // peers have been asked for envelopes only
    adi::RequestIds ids_;
};

inline Connection* connection_of(const process_t* proc) { return static_cast<Connection*>(proc->p_pm); }

}  // namespace viaduct::stream
