// SPDX-License-Identifier: BSD-2-Clause
// Frames through the lanes, and sleeping on the doorbell.
#include <algorithm>
#include <cstring>

#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/futex.hpp"
#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/shm/shm.hpp"

namespace viaduct::shm {

using protocol::Frame;
using protocol::FrameType;

namespace {

constexpr unsigned kPassesBetweenTimers = 64;
constexpr auto kCheckInterval = std::chrono::milliseconds(20);
constexpr auto kMappingInterval = std::chrono::milliseconds(250);  // one system call for each peer

bool in_line(FrameType type, size_t bytes) { return type == FrameType::eager && bytes <= kInline; }

bool ready_line(const Lane& lane) {
    const uint64_t word = lane.in.lines[lane.lines_received % kLines].word.load(std::memory_order_acquire);
    return static_cast<uint32_t>(word) == lane.lines_received + 1;
}

// Reports what has been taken, a quarter of either ring at a time.
void report_taken(Lane& lane) {
    if (lane.blocks_received - lane.blocks_reported >= lane.in.block_bytes / 4) {
        lane.blocks_reported = lane.blocks_received;
        lane.in.taken->blocks.store(lane.blocks_received, std::memory_order_release);
    }
    if (lane.lines_received - lane.lines_reported >= kLines / 4) {
        lane.lines_reported = lane.lines_received;
        lane.in.taken->lines.store(lane.lines_received, std::memory_order_release);
    }
}

// Room for a payload in the blocks; nullptr: not now.
char* claim_blocks(Lane& lane, size_t bytes) {
    const uint64_t at = lane.out.place(lane.blocks_sent, bytes);
    const uint64_t end = at + rounded(bytes);
    if (end - lane.blocks_taken > lane.out.block_bytes) {
        lane.blocks_taken = lane.out.taken->blocks.load(std::memory_order_acquire);
        if (end - lane.blocks_taken > lane.out.block_bytes) return nullptr;
    }
    lane.blocks_sent = end;
    return lane.out.blocks + at % lane.out.block_bytes;
}

}  // namespace

// The next line, if the other side has taken what was in it.
inline Line* Lane::free_line() {
    if (lines_sent == lines_room) {
        lines_room = out.taken->lines.load(std::memory_order_acquire) + kLines;
        if (lines_sent == lines_room) return nullptr;
    }
    return &out.lines[lines_sent % kLines];
}

inline void Lane::publish(Line& line, FrameType type, uint32_t bytes) {
    ++lines_sent;
    // Partner: poll(). What the line and the blocks hold is there before the line's number is.
    line.word.store(make_word(lines_sent, static_cast<uint8_t>(type), bytes), std::memory_order_release);
    ++adi::counters[MPIP_PROTO_SHM].mc_packets;
    light_barrier();  // partner: the heavy one in block()
    if (head->asleep.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        head->doorbell.fetch_add(1, std::memory_order_release);
        futex_wake(head->doorbell, 1, true);
    }
}

bool Lane::put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int) {
    if (bytes > piece) return false;
    Line* line = free_line();
    if (line == nullptr) return false;
    char* to = bytes <= kInline ? line->body + 16 : claim_blocks(*this, bytes);
    if (to == nullptr) return false;
    // The line last: the other side polls it.
    if (bytes != 0) mpip_copy(to, data, bytes);
    std::memcpy(line->body, &context, 8);
    std::memcpy(line->body + 8, &tag, 4);
    std::memcpy(line->body + 12, &rank, 4);
    publish(*line, FrameType::eager, static_cast<uint32_t>(bytes));
    return true;
}

bool Lane::put(const Frame& frame, const protocol::Payload& payload) {
    Line* line = free_line();
    if (line == nullptr) return false;
    const size_t bytes = frame.bytes;
    char* to = line->body + 16;
    if (bytes != 0 && !in_line(frame.type, bytes)) {
        to = claim_blocks(*this, bytes);
        if (to == nullptr) return false;
    }
    payload.copy(to, bytes);
    if (frame.type == FrameType::eager) {
        std::memcpy(line->body, &frame.context, 8);
        std::memcpy(line->body + 8, &frame.tag, 4);
        std::memcpy(line->body + 12, &frame.rank, 4);
    } else {
        std::memcpy(line->body, &frame, sizeof frame);
    }
    publish(*line, frame.type, frame.bytes);
    return true;
}

// One frame of a peer, if there is one. Lines and counts are read once; a payload may change under our hands
// if the peer is hostile, and is nothing but payload.
int Shm::poll(Lane& lane) {
    const Line& line = lane.in.lines[lane.lines_received % kLines];
    const uint64_t word = line.word.load(std::memory_order_acquire);
    if (static_cast<uint32_t>(word) != lane.lines_received + 1) return 0;
    char body[sizeof line.body];
    std::memcpy(body, line.body, sizeof body);
    const FrameType type = static_cast<FrameType>(static_cast<uint8_t>(word >> 32));
    const uint32_t bytes = static_cast<uint32_t>(word >> 40);
    ++lane.lines_received;
    const char* data = body + 16;
    if (bytes != 0 && !in_line(type, bytes)) {
        if (bytes > piece_) {
            fail(lane.peer, "it sent an invalid frame");
            return 1;
        }
        const uint64_t at = lane.in.place(lane.blocks_received, bytes);
        data = lane.in.blocks + at % lane.in.block_bytes;
        lane.blocks_received = at + rounded(bytes);
    }
    if (type == FrameType::eager) [[likely]] {
        uint64_t context;
        int32_t tag, rank;
        std::memcpy(&context, body, 8);
        std::memcpy(&tag, body + 8, 4);
        std::memcpy(&rank, body + 12, 4);
        incoming_whole(lane.peer, context, tag, rank, MPIP_MODE_STANDARD, data, bytes);
    } else {
        Frame frame;
        std::memcpy(&frame, body, sizeof frame);
        frame.type = type;
        frame.bytes = bytes;
        if (!incoming(lane.peer, frame, data)) {
            fail(lane.peer, "it sent a frame that is invalid in this state");
            return 1;
        }
    }
    report_taken(lane);
    return 1;
}

int Shm::progress() {
    int done = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {  // a lost one takes itself out
        Lane& lane = *lanes_[i];
        protocol::Peer& peer = lane.peer;
        done += poll(lane);
        if (!peer.lost() && peer.blocked()) done += push(peer);
    }
    if (done == 0 && ++idle_ % kPassesBetweenTimers == 0) run_timers();
    return done;
}

// By a timer and not by passes: on a busy machine a pass may take as long as a turn of every other process.
void Shm::run_timers() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return;
    next_look_ = now + kCheckInterval;
    fail_ended_peers();
    if (now < next_look_at_mappings_) return;
    next_look_at_mappings_ = now + kMappingInterval;
    fail_other_programs();
}

// What an ended process has sent is still valid.
void Shm::take_all(Lane& lane) {
    while (!lane.peer.lost() && poll(lane) != 0) {
    }
}

void Shm::fail_other_programs() {
    const std::vector<Lane*> lanes = lanes_;
    for (Lane* lane : lanes) {
        // One that has closed does not keep its segment.
        if (lane->peer.lost() || lane->peer.closing_received || !lane->process.has_lost_mapping()) continue;
        take_all(*lane);
        if (!lane->peer.closing_received) fail(lane->peer, "its process has become another program, or ended");
    }
}

void Shm::fail_ended_peers() {
    const std::vector<Lane*> lanes = lanes_;
    for (Lane* lane : lanes) {
        if (lane->peer.lost() || (!lane->ended && lane->process.state() != WatchedProcess::State::ended)) continue;
        take_all(*lane);
        fail(lane->peer, "its process has ended");
    }
}

int Shm::block(unsigned timeout_us) {
    if (head_ == nullptr) return 0;
    run_timers();
    int64_t timeout_ns = static_cast<int64_t>(timeout_us) * 1000;
    const uint32_t doorbell = head_->doorbell.load(std::memory_order_acquire);
    head_->asleep.store(1, std::memory_order_relaxed);
    heavy_barrier();  // partner: publish(). Lines published before are seen now; a later sender sees `asleep`
    bool nothing = true;
    for (const Lane* lane : lanes_) {
        if (ready_line(*lane)) nothing = false;
        if (lane->peer.blocked()) timeout_ns = std::min<int64_t>(timeout_ns, 100'000);  // free room is not signalled
    }
    if (nothing) {
        const adi::SleepScope sleep;
        futex_wait(head_->doorbell, doorbell, timeout_ns, true);
    }
    head_->asleep.store(0, std::memory_order_relaxed);
    return 0;
}

}  // namespace viaduct::shm
