// SPDX-License-Identifier: BSD-2-Clause
// Several lanes to one process, of any kind, as one lane. Frames get numbers and take the lanes in turn, and are
// delivered by their numbers on the other side; long messages are written or read in stripes, each lane taking one when
// it has room. A frame is kept until the other side has acknowledged it. When a lane fails, what has not arrived
// through it is sent again through others; nothing is delivered twice, and no remote write is repeated, because its
// memory may be in other use by then. Under the engine's lock.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "core/process/watched_process.hpp"
#include "mpi-adi/transport/multirail/rail.hpp"
#include "mpi-adi/transport/protocol/send.hpp"

namespace viaduct::multirail {

using Clock = std::chrono::steady_clock;
using protocol::Frame;
using protocol::FrameType;
using protocol::Transfer;

class MultiLane;
class Multirail;

constexpr size_t kLeastStripe = 32 * 1024;                     // mp_min_frag: a long message is not cut below
constexpr size_t kMostStripe = 1024 * 1024;                    // mp_max_frag, unless a NIC takes less
constexpr int kStripesAhead = 2;                               // on one lane: one being moved, one behind it
constexpr size_t kMostKept = 8 * 1024 * 1024;                  // bytes of frames under way
constexpr size_t kUnacknowledged = 1024 * 1024;                // bytes received after which an acknowledgement is sent

// Memory that keeps its size while it is small.
class Buffer {
public:
    char* room(size_t bytes) {
        if (bytes > room_) {
            at_.reset(new char[bytes]);
            room_ = bytes;
        }
        return at_.get();
    }
    char* at() const { return at_.get(); }
    void clear() {
        if (room_ <= kSmall) return;
        at_.reset();
        room_ = 0;
    }

private:
    static constexpr size_t kSmall = 4096;
    std::unique_ptr<char[]> at_;
    size_t room_ = 0;
};

// A frame of this process that the other side has not acknowledged.
struct Kept {
    enum State : uint8_t {
        none,         // it has been acknowledged
        out,          // given to a lane
        unconfirmed,  // that lane has failed: the frame may have arrived
        to_send,      // again or for the first time
    } state = none;
    uint8_t link = 0;
    Frame frame = {};  // for the lane
    Buffer packet;     // its payload: Prefix and what follows
    // `placed`: the stripe that it reports, which goes before it on the same lane.
    Transfer* transfer = nullptr;
    size_t at = 0, bytes = 0, written = 0;
    bool part = false;  // or a piece of a long message, which counts as a stripe of its lane
};

// A frame that came before its turn.
struct Early {
    bool present = false;
    Frame frame = {};
    Buffer payload;
};

// A remote write or read under way.
struct Part : Transfer {
    Transfer* whole = nullptr;
    size_t link = 0;
    size_t at = 0, bytes = 0;
    bool write = false, list = false;  // list: of pieces
    Clock::time_point posted;
};

enum class LinkState : uint8_t {
    absent,  // the process has no such rail
    down,    // waits for its next attempt
    connecting,
    handshake,  // connected; only `hello` may be sent before the other side's has arrived
    up,
};

// One of the lanes.
struct Link {
    Rail* rail = nullptr;
    protocol::Peer* peer = nullptr;  // its own, in the protocol of its rail
    process_t proc = {};             // and this one's process
    LinkState state = LinkState::absent;
    bool suspect = false;  // the other side has reported its end
    bool hello_due = false, report_due = false;
    uint32_t number = 0;        // of its connection, ours
    uint32_t their_number = 0;  // the same, theirs, by their hello
    uint32_t ended = 0;         // our last connection that has ended
    uint32_t their_ended = 0;   // their last one that has ended, by their report
    uint32_t report_before = 0;  // frames before this number had arrived then
    uint8_t report_received[kWindow / 8] = {};
    bool unsettled = false;  // frames are unconfirmed until a report names this connection
    uint32_t unsettled_number = 0;
    Clock::time_point next_try, hello_deadline;
    std::chrono::milliseconds pause{0};
    // Measured.
    double bandwidth = 0;           // bytes a second, 0: not yet
    double latency_ns = 0;          // half a round trip, 0: not yet
    int stripes = 0;                // under way
    Clock::time_point last_stripe;  // when the last one was found done
    Clock::time_point batch_began;  // of those found done together
    size_t batch_bytes = 0;
    uint64_t stripe_bytes = 0, frames = 0, losses = 0;
    bool probed = false;     // an echo is to come
    uint64_t probed_at = 0;  // and this is what it says
    int echoes = 0;          // had on this connection
};

class MultiLane final : public protocol::Lane, public protocol::UpperLayer {
public:
    MultiLane(protocol::Peer& of, Multirail& all) : protocol::Lane(of), rails(all) {}
    ~MultiLane() override;

    // --- protocol::Lane ---
    bool put(const Frame& frame, const protocol::Payload& payload) override;
    bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode) {
        return bytes <= piece && protocol::put_eager_frame(*this, data, bytes, tag, rank, context, mode);
    }
    size_t eager_limit(bool contiguous) const override;
    size_t transfer(bool write, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                    Transfer& t) override;
    bool flushed() override { return oldest_ == next_; }
    void cut() override;

    // --- protocol::UpperLayer: from the lanes ---
    void on_whole(protocol::Peer& by, const envelope& env, const void* data) override;
    void on_carried(protocol::Peer& by, const void* payload, size_t bytes) override;
    void on_lane_ready(protocol::Peer& by) override;
    void on_lost(protocol::Peer& by) override;
    void on_moved(Transfer& part) override;

    // --- what Multirail calls ---
    void add(Rail& rail, size_t at, const taskinfo_t* task, const Card& theirs, const Card& mine);
    int work(bool idle);
    void run_link_timers(Clock::time_point now);  // connects what is down, ends a handshake that takes too long
    void take_out_suspects();
    void probe();
    void measure(Clock::time_point now);
    void deliver_ready();
    bool is_connecting() const;  // some lane that could be up is not
    bool is_idle() const { return !to_send_ && redo_.empty() && parts_.empty() && !ack_due_; }
    bool was_used() { return std::exchange(probed_at_, next_ + expected_) != next_ + expected_; }

    uint32_t next_number() const { return next_; }
    uint32_t had() const { return expected_; }

    Multirail& rails;
    Link links[kMostRails];
    int links_up = 0;
    Clock::time_point down_since = Clock::now();  // no lane has been up since
    uint64_t resent = 0;
    // Of a peer whose process numbers mean here what they mean there: its end, and that it has become another program.
    WatchedProcess process;
    Clock::time_point next_look;  // at it, while no lane is up

private:
    struct Redo {
        Transfer* transfer;
        size_t at, bytes;
    };
    // order.cpp
    Kept& kept(uint32_t number) { return kept_[number % kWindow]; }
    bool may_send() const { return to_send_ == 0 && next_ - oldest_ < kWindow && kept_bytes_ < kMostKept; }
    Kept& pack(const Frame& frame, const protocol::Payload& payload);
    bool post(Kept& k);
    bool post_on(Kept& k, size_t at);
    int send_kept();
    void confirm(Kept& k);
    bool acknowledge(uint32_t had);
    bool take(const Prefix& prefix, const Frame& frame, const char* payload);
    void deliver(const Frame& frame, const char* payload);
    void note_acknowledged();
    bool send_control(Link& link, Kind kind, uint64_t word, const Report* report);
    void send_ack();
    // failover.cpp
    Link& link_of(const protocol::Peer& by);
    void send_report(Link& link, Kind kind);
    bool take_report(Link& link, const Prefix& prefix, const Report& report);
    void settle(Link& link);
    void send_probe(Link& link);
    bool take_control(Link& link, Kind kind, const Prefix& prefix, const Frame& frame, const char* payload);
    // stripe.cpp
    size_t choose_for_stripe(const protocol::PieceList& near, const protocol::PieceList& far);
    size_t move_part(size_t at, bool write, const protocol::PieceList& near, const protocol::PieceList& far,
                     size_t most, Transfer& t, size_t offset);
    size_t send_part(size_t most, Transfer& t);
    bool write_rest(Kept& k);
    int redo();
    void check_complete(Transfer& t);
    void drop(Part* part);

    std::unique_ptr<Kept[]> kept_{new Kept[kWindow]};
    std::unique_ptr<Early[]> early_{new Early[kWindow]};
    std::vector<Part*> parts_;
    std::vector<Redo> redo_;       // reads that broke off
    size_t turn_ = 0;
    uint32_t next_ = 0;            // number of the next frame
    uint32_t oldest_ = 0;          // frames before are at the other side
    uint32_t expected_ = 0;        // next frame to give out
    uint32_t acknowledged_ = 0;    // frames before this number are acknowledged to the other side
    uint32_t to_send_ = 0;         // kept frames in state to_send
    size_t kept_bytes_ = 0;
    size_t unacknowledged_bytes_ = 0;
    bool ack_soon_ = false;  // the other side waits for an acknowledgement
    bool ack_due_ = false;
    uint32_t probed_at_ = 0;       // frames either way by then
};

// In nanoseconds, of the lanes that are up and measured; infinite: there is none.
double least_latency(const Link (&links)[kMostRails]);

// How much a lane should take next of a long message of which `left` bytes are not handed out; bytes, at most `most`.
size_t stripe_size(const Link (&links)[kMostRails], const Link& link, size_t left, size_t most);

}  // namespace viaduct::multirail
