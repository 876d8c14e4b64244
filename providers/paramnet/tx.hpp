// SPDX-License-Identifier: BSD-2-Clause
// The state of the sending half of a connection. Under vi.send.lock.
#pragma once

#include <cstdint>
#include <memory>

#include "core/copy/copy.hpp"
#include "providers/paramnet/faults.hpp"
#include "providers/paramnet/method_tuner.hpp"
#include "providers/paramnet/prefetch_tuner.hpp"
#include "providers/paramnet/segment_layout.hpp"

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
    uint32_t trial = 0;      // the receiver measures its time
    int64_t begun = 0;       // then: when
    bool streaming = false;  // goes past the caches
    uint64_t address = 0;
    SegmentCursor cursor;
};

// A message that its receiver may not fetch.
struct OutgoingRelay {
    uint32_t ack_at = 0;  // which; 0: none
    uint32_t done = 0;
};

// An RDMA read or an atomic operation we have asked the peer to serve.
struct OutgoingRead {
    bool active = false;
    uint32_t position = 0;
    uint32_t total = 0;  // of the descriptor
    uint32_t status = 0;
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
    bool atomic = false;  // it has been done: what is answered is the word before
    uint64_t word = 0;
};

// A region of the peer's arena that has been written to: where it lies here.
struct RemoteTarget {
    RegionCache region;  // of the peer's table
    std::byte* at = nullptr;
};

// The block area of the lane to the peer.
struct TxBlocks {
    std::byte* at = nullptr;
    uint32_t next = 0;      // unit to be written next
    uint32_t consumed = 0;  // units that the peer has taken, as far as this end has seen
    uint32_t longest = 0;   // bytes of a fragment
    bool steady = false;    // the whole area has been written to: its pages are there
    uint32_t fetched_to = 0;  // units before this one, from `next` on, have been fetched for writing
};

// Messages that complete by the receiver's word.
struct TxAcks {
    uint32_t wanted = 0;
    uint32_t seen = 0;
    uint32_t looks = 0;         // without a result
    int64_t unacked_since = 0;  // about; 0: not yet looked at the clock
};

// RDMA of this end, and what it does for the peer's.
struct TxRdma {
    bool asks_help = false;  // some of the peer's memory only the peer can touch: its help keeps the order
    RemoteTarget target;
    OutgoingRead read;
    ReadReply reply;
};

// A lane that stays full.
struct TxStuck {
    uint32_t at = 0;    // line position at the first look
    int64_t since = 0;  // its time; 0: not stuck
};

// The modelled network (send_network.cpp).
struct TxNetwork {
    bool link_down = false;     // by the plan of either end
    bool paced = false;         // the link of this NIC takes its time (link_model.hpp)
    bool faults_passed = false;  // the head message has passed the fault plan
    bool link_passed = false;   // the head message has passed the link
    uint32_t stamped = 0;       // paced: descriptors before this one have the time of their post
    int64_t held_until = 0;     // fault plan: the head message may go then; 0: not decided yet
    std::unique_ptr<FaultModel> faults;
};

// What a connection has measured of its own messages.
struct TxLearnt {
    MethodTuner methods;     // of long messages
    uint32_t long_from = 0;  // from this length up a message takes one of them, however short
    PrefetchTuner answered;  // of messages of one fragment that are answered one by one,
    PrefetchTuner in_row;    // and of those that follow each other
    uint32_t received = 0;      // the line looked at next when the last of them went
    uint32_t last_trial = 0;  // number of the last message that was timed
};

struct alignas(128) Tx {
    // Nothing stands in the way of putting a small send straight into the lane: connected, peer started, no
    // backlog, no fault plan, no fence needed on either side.
    bool fast = false;
    bool acknowledged = false;  // Reliable Reception: every message completes by the receiver's word
    bool peer_started = false;
    bool stopped = false;  // an error is on its way through the queue: send nothing more
    bool backlog = false;
    bool needs_fence = false;  // the peer's process has no membarrier
    uint32_t burst_credit = 0;  // so many small sends may go without another look (lane_send_short.cpp)
    uint32_t small_limit = 0;
    uint64_t small_meta = 0;  // upper half of the word of a small send's line, its length excepted
    uint32_t next = 0;        // position of the next line
    uint32_t limit = 0;       // position that is not free yet as far as this end has seen
    uint32_t used = 0;        // messages sent that consume a receive
    uint32_t credits = 0;     // receives the peer has posted as far as this end has seen
    Line* lines = nullptr;
    EndRecord* own = nullptr;                    // our end record
    const EndRecord* peer = nullptr;             // the other end's
    std::unique_ptr<Outstanding[]> outstanding;  // parallel to the send queue's slots

    uint32_t lines_consumed = 0;
    TxBlocks blocks;
    TxAcks acks;
    OutgoingMessage message;
    OutgoingRelay relay;
    TxRdma rdma;
    TxStuck stuck;
    TxNetwork network;
    TxLearnt learnt;
};

}  // namespace viaduct::paramnet
