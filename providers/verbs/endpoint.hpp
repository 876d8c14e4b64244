// SPDX-License-Identifier: BSD-2-Clause
// The provider's part of a VI. [S] members belong to the holder of vi.send.lock, [R] ones to that of
// vi.recv.lock.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/vi/vi_core.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

struct Link;

// A work request's number: slot 16 bits, generation 15, receive 1, position 32.
inline constexpr uint32_t kGenerationMask = 0x7FFF;
inline uint64_t make_wr_id(uint32_t slot, uint32_t generation, bool receive, uint32_t position) {
    return uint64_t{slot} << 48 | uint64_t{generation} << 33 | uint64_t{receive} << 32 | position;
}
inline uint32_t slot_of(uint64_t wr_id) { return static_cast<uint32_t>(wr_id >> 48); }
inline uint32_t generation_of(uint64_t wr_id) { return static_cast<uint32_t>(wr_id >> 33) & kGenerationMask; }
inline bool is_receive(uint64_t wr_id) { return (wr_id >> 32 & 1) != 0; }
inline uint32_t position_of(uint64_t wr_id) { return static_cast<uint32_t>(wr_id); }

// A completion that was taken from the device's queue and waits for its VI's lock.
struct Arrival {
    uint32_t position = 0;
    uint32_t generation = 0;
    uint32_t length = 0;
    uint32_t immediate = 0;
    uint16_t status = 0;  // ibv_wc_status
    uint16_t opcode = 0;  // ibv_wc_opcode; only with IBV_WC_SUCCESS
    uint32_t flags = 0;
};

// One writer (holding the group's cq_lock), one reader (holding the queue's lock).
class Arrivals {
public:
    bool allocate(uint32_t power_of_two);
    bool push(const Arrival& a) {
        const uint32_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) > mask_) return false;
        ring_[tail & mask_] = a;
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }
    const Arrival* front() const {
        const uint32_t head = head_.load(std::memory_order_relaxed);
        return head == tail_.load(std::memory_order_acquire) ? nullptr : &ring_[head & mask_];
    }
    void pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
    bool empty() const { return front() == nullptr; }

private:
    std::unique_ptr<Arrival[]> ring_;
    uint32_t mask_ = 0;
    alignas(64) std::atomic<uint32_t> head_{0};
    alignas(64) std::atomic<uint32_t> tail_{0};
};

// Endpoint::bad_receive: the device has as much of the receive as its regions hold, and a message of that length is
// good.
inline constexpr uint32_t kReceiveHolds = 1u << 31;

// A descriptor of the send queue that has been taken.
struct Sent {
    enum State : uint8_t {
        posted,   // the device has it
        decided,  // completes in its turn, with what is below
    };
    State state = posted;
    bool breaks = false;         // its completion ends the connection
    bool report = false;         // and that is told as CONN_LOST
    bool takes_receive = false;  // of the peer's
    uint32_t status = 0;
    uint32_t length = 0;
    uint32_t key = 0;      // of the remote region
    uint32_t ordinal = 0;  // among those of its epoch that take a receive (recover.cpp)
};

}  // namespace viaduct::verbs

namespace viaduct {

struct Endpoint {
    ViCore* vi = nullptr;
    NicContext* nic = nullptr;
    Group* send_group = nullptr;
    Group* recv_group = nullptr;
    uint32_t slot = 0;
    uint32_t send_window = 0;
    uint32_t pins = 0;  // under links_mutex: keep endpoint_destroy waiting

    verbs::Link* link = nullptr;  // [RS] bound to a peer
    bool connected = false;       // [RS] started

    // [S]
    std::unique_ptr<verbs::Sent[]> sent;
    uint32_t on_device = 0;   // position up to which descriptors are known to be finished by the device
    uint32_t device_end = 0;  // position up to which the device has been given work
    uint32_t send_seen = 0;   // behind the position of the last completion, good or bad
    bool stopped = false;     // an error is on its way through the queue: nothing more is sent
    bool backlog = false;     // counted in NicContext::backlogs
    // Copies of device_end and send_seen that are read without the lock (queue_watch.hpp). Here, in the line
    // that the sending side writes anyway, and not beside what the receiving side writes.
    std::atomic<uint32_t> sends_given{0}, sends_seen{0};
    verbs::Arrivals send_arrivals;

    // [R]
    verbs::Link* takes_receives = nullptr;    // has a queue pair for them: `link`, or that of an attempt
    uint32_t recv_seen = 0;                   // as send_seen
    std::unique_ptr<uint32_t[]> bad_receive;  // by position: error bits of a receive that cannot be used
    verbs::Arrivals recv_arrivals;
};

}  // namespace viaduct

namespace viaduct::verbs {

Status endpoint_create(NicContext*, const EndpointArgs&, Endpoint** out);
void endpoint_destroy(Endpoint*);
void start(ViCore&);
Status finish_traffic(ViCore&);
void disconnect(ViCore&);

// data_send.cpp
void kick_send(ViCore&);            // [S]
void poll_send(ViCore&);            // [S]
void push_sends(Endpoint&);         // [S]
void repost_sends(Endpoint&);       // [S] what was taken and has not been executed, once more
void complete_in_order(Endpoint&);  // [S] what is finished
void drain_sends(Endpoint&);        // [S] what has arrived for the queue

// data_receive.cpp
void kick_recv(ViCore&);               // [R]
void poll_recv(ViCore&);               // [R]
void post_receives(Endpoint&, Link&);  // [R] what the queue holds and the device has not got yet
void drain_receives(Endpoint&);        // [R] what has arrived for the queue

// Keeps an endpoint from being destroyed while a link's event is handled; null when its connection is over.
Endpoint* pin_endpoint(Link&);
void unpin_endpoint(Endpoint&);

// The peer has left or cannot be reached. Any locks but links_mutex may be held.
void lose_link(Link&);
// The data queue pair has failed and the peer has not said why: it has a little while to do so.
void suspect(Link&);

}  // namespace viaduct::verbs
