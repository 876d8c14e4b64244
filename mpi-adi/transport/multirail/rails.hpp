// SPDX-License-Identifier: BSD-2-Clause
// Several NICs that serve one peer together (spec/adi P5, P6, P15-P17, P52, N2). `via` is this module when
// CMPI_VIA_NICS names more than one NIC.
//
// A *rail* is an open NIC; a *lane* is the VI on one rail to one peer. The protocol makes frames of messages;
// this module numbers the frames to a peer, sends each on a lane and gives them out in order on the other
// side:
// - frames go round-robin over the lanes of lowest latency, measured by probes;
// - long messages are written straight into the receiver's memory, in stripes that each lane takes as it
// becomes
//   free, sized by its measured bandwidth; a frame `placed` follows each stripe on the same VI, which keeps
//   order;
// - a packet is kept until a credit for it has come back, which is the receiver's word that it is there;
// - a lane that breaks is drained on both sides, each tells by the other lanes how far it had come, and
//   what had not arrived is sent again elsewhere: nothing twice, not even a remote write, for its memory may
//   be somebody else's by then;
// - the lane is connected again as soon as that works.
// A peer is lost when its process has ended or no lane has been up for CMPI_RAIL_PATIENCE seconds.
//
// Everything here is used under the engine's lock, except Rail::errors.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi-adi/transport/multirail/wire.hpp"
#include "mpi-adi/transport/protocol/send.hpp"
#include "mpi-adi/transport/via/credits.hpp"

namespace viaduct::rails {

using Clock = std::chrono::steady_clock;
using protocol::Frame;
using protocol::FrameType;

struct Bundle;
struct Lane;
using protocol::Transfer;

constexpr size_t kBufferBytes = 16 * 1024 - sizeof(VIP_DESCRIPTOR);
constexpr size_t kMostPayload = kBufferBytes - sizeof(Header) - sizeof(Frame);
constexpr uint32_t kWindow = 1024;                             // frames to a peer that may be under way
constexpr size_t kDirectFrom = 32 * 1024;                      // shorter ones are not worth two registrations
constexpr size_t kLeastStripe = 32 * 1024;                     // mp_min_frag: a long message is not cut below
constexpr size_t kMostStripe = 1024 * 1024;                    // mp_max_frag, unless the NIC takes less
constexpr int kStripesAhead = 2;                               // on one lane: one being moved, one behind it
constexpr auto kStripeTime = std::chrono::microseconds(1000);  // what a stripe should take

// A registered buffer with its descriptor, good on every rail. It is free when the NIC is done with it and
// the peer has it.
struct Packet {
    Packet* next;
    Lane* lane;
    Transfer* transfer;    // `placed`: the long message whose stripe it ends; a write: whose stripe it is
    uint64_t near, far;    // where that stripe lies on either side
    size_t bytes;          // and how long it is
    Clock::time_point posted;
    uint32_t sequence;
    uint16_t region;
    bool numbered;  // a frame: sent again when its lane breaks
    bool with_nic;
    bool awaited;  // the peer has not told of it
    bool write;    // no packet at all but the remote write of a stripe
    alignas(64) char buffer[kBufferBytes];
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR desc;
};

template <class T>
T* packet_as(Packet* p) {
    return reinterpret_cast<T*>(p->buffer);
}
inline Frame* frame_of(Packet* p) { return reinterpret_cast<Frame*>(p->buffer + sizeof(Header)); }
inline char* payload_of(Packet* p) { return p->buffer + sizeof(Header) + sizeof(Frame); }
inline Packet* packet_of(VIP_DESCRIPTOR* desc) {
    return reinterpret_cast<Packet*>(reinterpret_cast<char*>(desc) - offsetof(Packet, desc));
}

// Packets in order, linked through themselves.
struct PacketQueue {
    Packet* head = nullptr;
    Packet* tail = nullptr;
    bool empty() const { return head == nullptr; }
    void push(Packet* p) {
        p->next = nullptr;
        (head == nullptr ? head : tail->next) = p;
        tail = p;
    }
    Packet* pop() {
        Packet* p = head;
        head = p->next;
        return p;
    }
};

struct Rail {
    std::string name;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_NIC_ATTRIBUTES attributes = {};
    size_t index = 0;
    std::atomic<uint32_t> errors{0};  // counted by the error callback, on its own thread
    uint32_t errors_seen = 0;
    int with_nic = 0;           // descriptors on the send queues of its lanes
    int stripes = 0;            // of them writes
    bool stripes_done = false;  // some lane of it has something to measure
};

enum class LaneState : uint8_t {
    absent,      // the peer has no such rail
    down,        // waits for its next attempt
    connecting,  // a peer request is under way
    greeting,    // connected, the peer's hello is not here yet: nothing but hello may go
    up,
};

struct Lane {
    Bundle* bundle = nullptr;
    Rail* rail = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    LaneState state = LaneState::absent;
    bool suspect = false;    // broken, to be taken out
    bool chores = false;     // on the list of those with receives to post or credits to tell
    bool tell_soon = false;  // somebody waits for our word that it is here
    bool report_due = false;
    int prepared = 0;  // receives posted before the connection
    via::Credits credits;
    int with_nic = 0;           // descriptors on the send queue
    uint32_t number = 0;        // of its connection, ours
    uint32_t their_number = 0;  // the same, theirs, by their hello
    uint32_t received = 0;      // packets that cost credit, on this connection
    bool had_frames = false;
    uint32_t told = 0;    // packets of ours that the peer has told of, on this connection
    PacketQueue awaited;  // and those it has not, in order
    // The last connection whose end the peer has not told of.
    bool unsettled = false;
    uint32_t unsettled_number = 0;  // theirs
    uint32_t unsettled_told = 0;
    PacketQueue limbo;
    struct {
        uint32_t up_to = 0, number = 0, received = 0;
    } own_end, their_end;  // what we tell of it, what the peer has told
    // Measured.
    double bandwidth = 0;           // bytes a second, 0: not yet
    double latency_ns = 0;          // half a round trip
    int stripes = 0;                // under way
    Clock::time_point last_stripe;  // when the last one was found done
    Clock::time_point batch_began;  // of those found done together
    size_t batch_bytes = 0;
    uint64_t stripe_bytes = 0, frames = 0, losses = 0;
    Clock::time_point next_try, greeted_by;
    std::chrono::milliseconds pause{0};
    bool probed = false;     // an echo is to come
    uint64_t probed_at = 0;  // and this is what it says
    int echoes = 0;          // had on this connection
};

class Rails;

struct Bundle final : protocol::Lane {
    Bundle(protocol::Peer& of, Rails& all) : protocol::Lane(of), rails(all) {}
    bool put(const Frame& frame, const protocol::Payload& payload) override;
    bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode) {
        return protocol::put_eager_frame(*this, data, bytes, tag, rank, context, mode);
    }
    size_t eager_limit(bool) const override;
    size_t transfer(bool write, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                    Transfer& t) override;
    bool flushed() override { return oldest == next_sequence; }
    void cut() override;

    Rails& rails;
    Card card = {};
    rails::Lane lanes[kMostRails];
    size_t next_lane = 0;
    int lanes_up = 0;
    uint32_t next_sequence = 0;
    uint32_t oldest = 0;           // frames before are at the peer
    uint32_t expected = 0;         // next frame to give out
    uint32_t frames_at_probe = 0;  // sent and given out by then
    Packet* sent[kWindow] = {};    // frames that the peer has not told of
    Packet* early[kWindow] = {};   // frames that came before their turn
    std::vector<Packet*> again;    // to be sent once more, oldest last
    int pidfd = -1;
    Clock::time_point alone_since;  // no lane has been up since
    uint64_t resent = 0;
};

class Rails : public protocol::Protocol, private protocol::Memory {
public:
    using LaneClass = Bundle;
    Rails() : Protocol(MPIP_PROTO_VIA) {}

    // --- entries.cpp ---
    int initialize();
    bool reaches(const taskinfo_t* task, int rank) const;
    int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    int progress();
    void block(unsigned timeout_us);
    size_t describe(int rank, mpip_rail* out, size_t room) const;

    // --- nic.cpp ---
    Card make_card(const taskinfo_t* task);
    void finalize();

    // --- connect.cpp ---
    int connect(taskinfo_t* task);

private:
    friend struct Bundle;
    // nic.cpp
    int open_rail(const char* name);
    void close_rail(Rail& rail);
    bool reaches_by(const Card& mine, const Card& theirs, size_t rail) const;
    int make_queues(int peers);
    Packet* get_packet();
    void release(Packet* p);
    bool grow_pool();
    void free_pool();

    // connect.cpp
    int attach(const taskinfo_t* task, int rank, process_t* proc);
    void look_after_lanes(Clock::time_point now);
    void advance(Lane& lane, Clock::time_point now);
    void begin(Lane& lane);
    void connected(Lane& lane, Clock::time_point now);
    void retry_later(Lane& lane, Clock::time_point now);

    // lane.cpp: packets on their way to the NIC and back
    bool has_slot(const Lane& lane) const { return lane.with_nic < send_depth_; }
    bool ready(const Lane& lane) const {
        return lane.state == LaneState::up && !lane.suspect && lane.credits.can_send() && has_slot(lane);
    }
    void post(Lane& lane, Packet* p, Kind kind, size_t bytes);
    void hand_to_nic(Lane& lane, Packet* p);
    bool post_buffer(Lane& lane);
    bool post_receive(Lane& lane, bool reserve);
    void post_missing_receives(Lane& lane);
    void send_noop(Lane& lane);
    void send_report(Lane& lane, Kind kind);
    void send_probe(Lane& lane);
    void collect_sends(Rail& rail);
    void sent(Packet* p, bool good);
    int take_arrivals(Rail& rail);
    int take_from(VIP_VI_HANDLE vi);
    bool take(Lane& lane, Packet* p);
    void arrived_before(Lane& lane, int packets);
    void want_chores(Lane& lane);
    int do_chores();

    // order.cpp: one order over all lanes
    Lane* choose(Bundle& bundle);
    void push_again(Bundle& bundle);
    void ask_for_word(Bundle& bundle);
    void here(Packet* p);
    bool take_frame(Bundle& bundle, Packet* p, size_t length, bool* kept);
    void give_out(Bundle& bundle);

    // failover.cpp
    void take_out_suspects();
    void take_out(Lane& lane);
    bool take_report(Lane& lane, const Report& report);
    bool settle(Lane& lane);
    void suspect(Lane& lane);
    void cut(Bundle& bundle);
    void look_for_lost(Clock::time_point now);

    // stripe.cpp
    protocol::Registration* hold(void* address, size_t bytes) override;
    void release(protocol::Registration* registration) override;
    size_t handles() const override { return kMostRails; }
    Lane* choose_for_stripe(Bundle& bundle, const protocol::PieceList& near, const protocol::PieceList& far);
    bool write_stripe(Lane& lane, Packet* placed);
    void measure(Lane& lane, Clock::time_point now);
    void look_for_end(Transfer& t);

    int work();
    void look_by_the_clock();

    std::vector<std::unique_ptr<Rail>> rails_;
    std::vector<Bundle*> bundles_;
    Card card_ = {};
    via::CreditRules credit_rules_;
    int send_depth_ = 0;
    int queue_peers_ = 0;
    size_t most_stripe_ = 0;
    size_t eager_limit_ = 0;
    int me_ = 0;
    uint64_t job_ = 0;
    bool opened_ = false;  // the engine takes messages
    bool suspects_ = false;
    int lanes_to_make_ = 0;  // lanes that are neither up nor absent
    int stripes_ = 0;        // under way, on all lanes
    std::vector<Lane*> chores_;
    Clock::time_point next_look_, next_probe_, last_pass_;
    std::chrono::microseconds nap_{0};
    size_t next_rail_ = 0;
    unsigned idle_ = 0;

    struct Region {
        void* memory;
        size_t bytes;
        VIP_MEM_HANDLE handle[kMostRails];
    };
    std::vector<Region> regions_;
    Packet* free_ = nullptr;
    size_t total_ = 0;
};

// How much a lane should take next of a long message of which `left` bytes are not handed out; bytes, at most
// `most`.
size_t stripe_size(const Bundle& bundle, const Lane& lane, size_t left, size_t most);

inline Bundle* bundle_of(const protocol::Peer& peer) { return static_cast<Bundle*>(peer.lane.get()); }

}  // namespace viaduct::rails
