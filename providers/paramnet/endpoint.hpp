// SPDX-License-Identifier: BSD-2-Clause
// The provider's part of a VI: both lanes of its connection as this end sees them. `tx` and what hangs on it
// belongs to the holder of vi.send.lock, `rx` to the holder of vi.recv.lock; atomic members may be looked at
// by pollers without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/shm/segment.hpp"
#include "core/vi/vi_core.hpp"
#include "providers/paramnet/peer.hpp"
#include "providers/paramnet/rx.hpp"
#include "providers/paramnet/tx.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

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
    // A thread that holds only the receive lock, or none, should look at the send side: a backlog, or an
    // answer of the peer's that is waited for.
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
    paramnet::Joint retired;               // the connection before, which a poller may still be looking at
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
// Recomputes Endpoint::send_attention. Send lock held.
void update_attention(Endpoint&);

// Marks the connection broken.
void break_connection(Endpoint&, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode = 0, const Cause& = {},
                      bool told_by_peer = false);
void break_connection(Endpoint&, VIP_ERROR_CODE code, bool report, CauseKind);

// Tells the other end's pollers and sleepers, or its progress thread. A queue lock held.
void ring_peer(const Endpoint&);
void call_peer(const Endpoint&);
// Makes a poll request: our own pollers and sleepers look at the endpoint although no peer rings.
void request_poll(const Endpoint&);

Status set_fault_plan(ViCore&, const char* plan);

}  // namespace viaduct::paramnet
