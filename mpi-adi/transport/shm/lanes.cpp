// SPDX-License-Identifier: BSD-2-Clause
// Frames through the lanes, and sleeping on the doorbell.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/futex.hpp"
#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/shm/shm.hpp"

namespace viaduct::shm {

using stream::Frame;
using stream::FrameType;

namespace {

constexpr unsigned kPassesBetweenClocks = 64;
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

bool in_line(FrameType type, size_t bytes) { return type == FrameType::eager && bytes <= kInline; }

bool ready_line(const Peer& peer) {
    const uint64_t word = peer.in.lines[peer.lines_had % kLines].word.load(std::memory_order_acquire);
    return static_cast<uint32_t>(word) == peer.lines_had + 1;
}

// What has been taken is told seldom: a quarter of either ring at a time.
void tell_taken(Peer& peer) {
    if (peer.blocks_had - peer.blocks_told >= peer.in.block_bytes / 4) {
        peer.blocks_told = peer.blocks_had;
        peer.in.taken->blocks.store(peer.blocks_had, std::memory_order_release);
    }
    if (peer.lines_had - peer.lines_told >= kLines / 4) {
        peer.lines_told = peer.lines_had;
        peer.in.taken->lines.store(peer.lines_had, std::memory_order_release);
    }
}

// Room for a payload in the blocks; nullptr: not now.
char* claim_blocks(Peer& peer, size_t bytes) {
    const uint64_t at = peer.out.place(peer.blocks_sent, bytes);
    const uint64_t end = at + rounded(bytes);
    if (end - peer.blocks_taken > peer.out.block_bytes) {
        peer.blocks_taken = peer.out.taken->blocks.load(std::memory_order_acquire);
        if (end - peer.blocks_taken > peer.out.block_bytes) return nullptr;
    }
    peer.blocks_sent = end;
    return peer.out.blocks + at % peer.out.block_bytes;
}

}  // namespace

bool Shm::put(stream::Connection& c, const Frame& frame, const void* payload, const mpip_req_t* source,
              size_t offset) {
    Peer& peer = static_cast<Peer&>(c);
    if (peer.lines_sent == peer.lines_room) {
        peer.lines_room = peer.out.taken->lines.load(std::memory_order_acquire) + kLines;
        if (peer.lines_sent == peer.lines_room) return false;
    }
    Line& line = peer.out.lines[peer.lines_sent % kLines];
    const size_t bytes = frame.bytes;
    char* to = line.body + 16;
    if (bytes != 0 && !in_line(frame.type, bytes)) {
        to = claim_blocks(peer, bytes);
        if (to == nullptr) return false;
    }
    if (frame.type == FrameType::eager) {
        std::memcpy(line.body, &frame.context, 8);
        std::memcpy(line.body + 8, &frame.tag, 4);
        std::memcpy(line.body + 12, &frame.rank, 4);
    } else {
        std::memcpy(line.body, &frame, sizeof frame);
    }
    if (source != nullptr) {
        mpip_req_collect(source, offset, to, bytes);
    } else if (bytes != 0) {
        std::memcpy(to, payload, bytes);
    }
    ++peer.lines_sent;
    // Partner: poll(). What the line and the blocks hold is there before the line's number is.
    line.word.store(make_word(peer.lines_sent, static_cast<uint8_t>(frame.type), frame.bytes),
                    std::memory_order_release);
    ++adi::counters[MPIP_PROTO_SHM].mc_packets;
    light_barrier();  // partner: the heavy one in block()
    if (peer.head->asleep.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        peer.head->doorbell.fetch_add(1, std::memory_order_release);
        futex_wake(peer.head->doorbell, 1, true);
    }
    return true;
}

// One frame of a peer, if there is one. Lines and counts are read once; a payload may change under our hands
// if the peer is hostile, and is nothing but payload.
int Shm::poll(Peer& peer) {
    const Line& line = peer.in.lines[peer.lines_had % kLines];
    const uint64_t word = line.word.load(std::memory_order_acquire);
    if (static_cast<uint32_t>(word) != peer.lines_had + 1) return 0;
    char body[sizeof line.body];
    std::memcpy(body, line.body, sizeof body);
    const FrameType type = static_cast<FrameType>(static_cast<uint8_t>(word >> 32));
    const uint32_t bytes = static_cast<uint32_t>(word >> 40);
    Frame frame = {};
    if (type == FrameType::eager) {
        std::memcpy(&frame.context, body, 8);
        std::memcpy(&frame.tag, body + 8, 4);
        std::memcpy(&frame.rank, body + 12, 4);
        frame.length = bytes;
    } else {
        std::memcpy(&frame, body, sizeof frame);
    }
    frame.type = type;
    frame.bytes = bytes;
    ++peer.lines_had;
    const char* data = body + 16;
    if (bytes != 0 && !in_line(type, bytes)) {
        if (bytes > piece_) {
            fail(peer, "it sent a frame that cannot be");
            return 1;
        }
        const uint64_t at = peer.in.place(peer.blocks_had, bytes);
        data = peer.in.blocks + at % peer.in.block_bytes;
        peer.blocks_had = at + rounded(bytes);
    }
    if (!incoming(peer, frame, data)) {
        fail(peer, "it sent a frame that makes no sense here");
        return 1;
    }
    tell_taken(peer);
    return 1;
}

int Shm::progress() {
    int done = 0;
    for (size_t i = 0; i < peers_.size(); ++i) {  // a lost one takes itself out
        Peer& peer = *peers_[i];
        done += poll(peer);
        if (!peer.lost && blocked(peer)) done += push(peer);
    }
    if (done == 0 && ++idle_ % kPassesBetweenClocks == 0) look_at_times();
    return done;
}

// By the clock: on a busy machine each pass may cost a turn of everybody else.
void Shm::look_at_times() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return;
    next_look_ = now + kBetweenLooks;
    look_for_lost();
}

namespace {

// Also when it has ended and its parent has not heard of it yet.
bool has_left_its_folder(const Peer& peer) {
    if (peer.ended) return true;
    if (!peer.folder.valid()) return false;
    const Fd file(::openat(peer.folder.get(), "stat", O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return errno == ESRCH || errno == ENOENT;
    char text[128] = {};
    if (::read(file.get(), text, sizeof text - 1) <= 0) return errno == ESRCH;
    const char* name_ends = std::strrchr(text, ')');
    return name_ends != nullptr && (name_ends[2] == 'Z' || name_ends[2] == 'X');
}

}  // namespace

void Shm::look_for_lost() {
    const std::vector<Peer*> peers = peers_;
    std::vector<pollfd> polls;
    for (const Peer* peer : peers) polls.push_back({peer->pidfd.get(), POLLIN, 0});
    if (polls.empty() || ::poll(polls.data(), polls.size(), 0) < 0) return;
    for (size_t i = 0; i < peers.size(); ++i) {
        if (peers[i]->lost || (polls[i].revents == 0 && !has_left_its_folder(*peers[i]))) continue;
        while (!peers[i]->lost && poll(*peers[i]) != 0) {  // what it had said is still good
        }
        fail(*peers[i], "its process has ended");
    }
}

void Shm::block(unsigned timeout_us) {
    if (head_ == nullptr) return;
    look_at_times();
    int64_t timeout_ns = static_cast<int64_t>(timeout_us) * 1000;
    const uint32_t bell = head_->doorbell.load(std::memory_order_acquire);
    head_->asleep.store(1, std::memory_order_relaxed);
    heavy_barrier();  // whoever published before is seen now, whoever publishes later sees us asleep
    bool nothing = true;
    for (const Peer* peer : peers_) {
        if (ready_line(*peer)) nothing = false;
        if (blocked(*peer)) timeout_ns = std::min<int64_t>(timeout_ns, 100'000);  // nobody rings for room
    }
    if (nothing) {
        const adi::Asleep asleep;
        futex_wait(head_->doorbell, bell, timeout_ns, true);
    }
    head_->asleep.store(0, std::memory_order_relaxed);
}

}  // namespace viaduct::shm
