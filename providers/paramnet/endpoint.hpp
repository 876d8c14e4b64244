// SPDX-License-Identifier: BSD-2-Clause
// The provider's part of a VI: both lanes of its connection as this end sees them. `tx` and what hangs on it
// belongs to whoever holds vi.send.lock, `rx` to the holder of vi.recv.lock; atomic members may be looked at
// by pollers without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/copy/copy.hpp"
#include "core/shm/segment.hpp"
#include "core/vi/vi_core.hpp"
#include "providers/paramnet/ahead.hpp"
#include "providers/paramnet/faults.hpp"
#include "providers/paramnet/peer.hpp"
#include "providers/paramnet/segment_layout.hpp"
#include "providers/paramnet/ways.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

// What follows when a descriptor completes.
enum class After : uint8_t {
    nothing,
    break_silently,  // the connection ends; the descriptor's status has said why
    break_lost,      // the connection ends and CONN_LOST is reported
};

// A descriptor of the send queue that has been taken but may not complete yet.
struct Outstanding {
    enum State : uint8_t { ready, sending, waits_for_ack, waits_for_read };
    uint32_t ack_at = 0;  // completes when the peer's `placed` has come this far
    uint32_t status = 0;
    uint32_t length = 0;
    State state = ready;
    After after = After::nothing;
    bool fetched = false;   // by the receiver, out of memory that only a system call reaches
    int64_t posted_at = 0;  // where the link takes its time (Tx::paced), until the descriptor is taken
};

// A message that is on its way into the lane in fragments.
struct OutgoingMessage {
    bool active = false;
    bool first = false;      // nothing of it has been sent
    uint32_t operation = 0;  // kLineSend or kLineWrite
    uint32_t flags = 0;
    uint32_t position = 0;  // of its descriptor in the send queue
    uint32_t immediate = 0;
    uint32_t total = 0;
    uint32_t handle = 0;     // write: target region
    uint32_t trial = 0;      // the receiver is asked to time it
    int64_t begun = 0;       // then: when
    bool streaming = false;  // goes past the caches
    uint64_t address = 0;
    SegmentCursor cursor;
};

// An RDMA read we have asked the peer to serve.
struct OutgoingRead {
    bool active = false;
    uint32_t position = 0;
    uint32_t total = 0;
    SegmentCursor cursor;
};

// An RDMA read of the peer that we serve.
struct ReadReply {
    bool active = false;
    bool refused = false;
    uint32_t handle = 0;
    uint32_t total = 0;
    uint32_t done = 0;
    uint64_t address = 0;
};

// A region of the peer's arena that has been written to: where it lies here.
struct RemoteTarget {
    RegionCache region;  // of the peer's table
    std::byte* at = nullptr;
};

// A message that we may not fetch and have its sender hand over (relay.cpp).
struct IncomingRelay {
    bool active = false;
    uint32_t asked = 0;  // EndRecord::relay_wanted
    uint32_t total = 0;
    uint32_t flags = 0;
    uint32_t immediate = 0;
};

// A message that its receiver may not fetch.
struct OutgoingRelay {
    uint32_t ack_at = 0;  // which; 0: none
    uint32_t done = 0;
};

struct alignas(128) Tx {
    // Nothing stands in the way of putting a small send straight into the lane: connected, peer started, no
    // backlog, no fault plan, no fence needed on either side.
    bool fast = false;
    bool acknowledged = false;  // Reliable Reception: every message completes by the receiver's word
    bool peer_started = false;
    bool asks_help = false;  // some of the peer's memory only the peer can touch: its help keeps the order
    bool stopped = false;  // an error is on its way through the queue: send nothing more
    bool backlog = false;
    bool link_down = false;  // by the plan of either end
    bool paced = false;      // the link of this NIC takes its time (link_model.hpp)
    uint32_t room = 0;       // so many small sends may go without another look (lane_send_short.cpp)
    uint32_t small_limit = 0;
    uint64_t small_meta = 0;  // upper half of the word of a small send's line, its length excepted
    uint32_t next = 0;        // position of the next line
    uint32_t limit = 0;       // position that is not free yet as far as we know
    uint32_t used = 0;        // messages sent that consume a receive
    uint32_t credits = 0;     // receives the peer has posted as far as we know
    Line* lines = nullptr;
    std::byte* blocks = nullptr;
    EndRecord* own = nullptr;                    // our end record
    const EndRecord* peer = nullptr;             // the other end's
    std::unique_ptr<Outstanding[]> outstanding;  // parallel to the send queue's slots

    uint32_t long_from = 0;    // from this length up a message takes one of `ways`, however short
    uint32_t block_bytes = 0;  // longest fragment
    bool steady = false;       // the whole block area has been written to
    uint32_t lines_consumed = 0;
    uint32_t units_consumed = 0;
    uint32_t unit_next = 0;
    uint32_t acks_wanted = 0;
    uint32_t acks_seen = 0;
    RemoteTarget target;
    OutgoingMessage message;
    OutgoingRead read;
    ReadReply reply;
    OutgoingRelay relay;

    bool needs_fence = false;   // the peer's process has no membarrier
    uint32_t stuck_at = 0;      // line position at the first of them
    int64_t stuck_since = 0;    // its time; 0: not stuck
    uint32_t ack_looks = 0;     // looks for an acknowledgement in vain
    int64_t unacked_since = 0;  // since when, about; 0: not yet looked at the clock
    int64_t held_until = 0;     // fault plan: the head message may go then; 0: not decided yet
    bool fate_decided = false;  // the head message has passed the fault plan
    uint32_t stamped = 0;       // paced: descriptors before this one know when they were posted
    bool link_passed = false;   // the head message has passed the link
    std::unique_ptr<FaultModel> faults;
    Ways ways;               // of long messages
    Ahead ahead_answered;    // of messages of one fragment that are answered one by one,
    Ahead ahead_in_row;      // and of those that follow each other
    uint32_t heard = 0;      // the line looked at next when the last of them went
    uint32_t ahead_end = 0;  // units before this one, from unit_next on, have been fetched for writing
};

// A message that is arriving in fragments.
struct IncomingMessage {
    enum Kind : uint8_t { none, into_receive, into_memory, discarded };
    Kind kind = none;
    uint32_t flags = 0;  // of its first line
    uint32_t immediate = 0;
    uint32_t total = 0;
    uint32_t remaining = 0;
    uint32_t handle = 0;  // into_memory
    uint64_t address = 0;
    TimedMark mark{};      // kFlagTimed
    SegmentCursor cursor;  // into_receive
};

struct alignas(128) Rx {
    std::atomic<const Line*> lines;  // a lane of zeros while not connected
    std::atomic<uint32_t> next{0};
    uint32_t alone = 0;  // so many more lines to take without a look at the one behind (lane_receive.cpp)
    std::atomic<uint32_t> polled{0};  // recv_mode of our end record is kModePolled
    uint32_t published = 0;           // lines told to the sender
    uint32_t unit_next = 0;
    uint32_t units_published = 0;
    uint32_t acks = 0;
    uint32_t base = 0;  // recv.posted when `posted` in the end record was 0
    bool acknowledged = false;
    bool unreliable = false;
    bool ended = false;   // a line has broken the connection: none behind it is taken
    bool in_row = false;  // the line being taken was there when the one before was done
    const std::byte* blocks = nullptr;
    EndRecord* own = nullptr;
    const EndRecord* peer = nullptr;
    IncomingMessage message;
    IncomingRelay relay;
};

// What a connection attempt leaves behind for start().
struct Joint {
    Segment segment;
    Peer* peer = nullptr;
    uint32_t side = 0;
    uint32_t peer_slot = 0;
    ConnectionSegment* shared() const { return reinterpret_cast<ConnectionSegment*>(segment.data()); }
    bool valid() const { return peer != nullptr; }
};

}  // namespace viaduct::paramnet

namespace viaduct {

struct Endpoint {
    ViCore* vi = nullptr;
    NicContext* nic = nullptr;
    Group* send_group = nullptr;
    Group* recv_group = nullptr;
    uint32_t slot = 0;

    paramnet::Rx rx;
    // Somebody who holds only the receive lock, or none, should look at the send side: backlog or replies.
    std::atomic<uint32_t> send_attention{0};
    // Non-zero: descriptors of the send queue wait for the peer's acknowledgement (hint for pollers). Changes
    // whenever the oldest one does.
    std::atomic<uint32_t> awaits_acks{0};
    // The progress thread has found that the peer leaves messages for long; taken back under the send lock.
    std::atomic<bool> left_waiting{false};
    // Paced: when the head message has passed the network; 0: it is not on its way. Written with the send
    // lock.
    std::atomic<int64_t> arrives_at{0};
    // Receives of the peer as told by the last line that carried its count; written under the receive lock.
    std::atomic<uint32_t> peer_posted{0};
    paramnet::Tx tx;

    // Under both queue locks: serve_lines and push_sends run inside service(), by a thread of ours, which
    // holds the send lock already.
    bool servicing = false;

    // Changed with both queue locks and NicContext::slots_lock held.
    bool connected = false;
    paramnet::Joint joint;                 // bound, maybe started
    std::vector<paramnet::Joint> retired;  // past connections that a poller may still be looking at
    // Written under slots_lock, looked at anywhere: polled directly by its group.
    std::atomic<bool> recv_hot{false};
    std::atomic<bool> send_hot{false};
    uint32_t pins = 0;             // under slots_lock: threads of ours that use it without holding a lock
    uint32_t promotion_tries = 0;  // under recv.lock
    std::atomic<uint32_t> push_attempts{0};  // pushes that ended without room
    // Progress thread only: what it saw at its last look.
    uint32_t attempts_seen = 0;
    uint32_t lane_seen = 0;
    uint32_t acks_awaited = 0;
    bool lane_waits = false;
    uint32_t line_at_look = 0;
    uint32_t acks_at_look = 0;
    bool line_waited = false;
    bool watched = false;  // the application takes no lines: served in every tick until it does
    // Of the peer's end record, what has been dealt with. Written with both queue locks held.
    std::atomic<uint32_t> events_seen[paramnet::kEventKinds] = {};
    std::atomic<uint32_t> link_down_seen{0};
};

}  // namespace viaduct

namespace viaduct::paramnet {

// The line at which an unconnected endpoint looks.
extern const Line kSilentLane[kLines];

// Is there something in the lane? A hint when no lock is held.
inline bool lane_has_line(const Endpoint& ep) {
    const Line* lines = ep.rx.lines.load(std::memory_order_relaxed);
    const uint32_t next = ep.rx.next.load(std::memory_order_relaxed);
    return static_cast<uint32_t>(lines[next & (kLines - 1)].word.load(std::memory_order_acquire)) ==
           line_tag(next);
}

Status endpoint_create(NicContext*, const EndpointArgs&, Endpoint** out);
void endpoint_destroy(Endpoint*);

// Takes over a joint for an endpoint that is about to be started; no lock held.
void bind(Endpoint&, Joint&&);
void start(ViCore&);
Status finish_traffic(ViCore&);
void disconnect(ViCore&);

// Frees joints of past connections. No VI lock, no group lock held.
void reap(Endpoint&);

// Recomputes Tx::fast. Send lock held.
void update_fast(Endpoint&);

// Marks the connection broken.
void break_connection(Endpoint&, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode = 0);

// Tells the other end's pollers and sleepers, or its progress thread. A queue lock held.
void ring_peer(const Endpoint&);
void call_peer(const Endpoint&);
// The same for our own side: there is something that nobody will ring for.
void remind(const Endpoint&);

Status set_fault_plan(ViCore&, const char* plan);

}  // namespace viaduct::paramnet
