// SPDX-License-Identifier: BSD-2-Clause
// The module for processes that share memory (spec/adi 10, C9): rings of layout.hpp below the message
// protocol. A process maps the segments that the others offer (core/process/offered_memory.hpp). Their end, and
// that they have become other programs, is seen by core/process/watched_process.hpp.
#pragma once

#include <chrono>
#include <vector>

#include "core/process/offered_memory.hpp"
#include "core/process/watched_process.hpp"
#include "core/shm/segment.hpp"
#include "mpi-adi/transport/shm/layout.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::shm {

// What a process tells the others.
struct Card {
    uint32_t magic;
    uint32_t lanes;
    uint64_t host;
    uint64_t block_bytes;
    MemoryOffer memory;
    uint32_t uid;
    uint32_t unused;
    uint64_t mapped_at;  // where its segment is in its own memory
};

class Shm;

class Lane final : public protocol::Lane {
public:
    Lane(protocol::Peer& of, Shm& all) : protocol::Lane(of), shm(all) {}
    bool put(const protocol::Frame& frame, const protocol::Payload& payload) override;
    [[nodiscard]] bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode);
    void cut() override;

    Shm& shm;
    Segment segment;  // theirs
    SegmentHead* head = nullptr;
    Ring out;
    uint32_t lines_sent = 0;
    uint32_t lines_room = kLines;  // number up to which lines are known to be free
    uint64_t blocks_sent = 0;
    uint64_t blocks_taken = 0;  // as last read
    Ring in;
    uint32_t lines_received = 0;
    uint32_t lines_reported = 0;
    uint64_t blocks_received = 0;
    uint64_t blocks_reported = 0;
    WatchedProcess process;  // with its own segment as the mapping
    bool ended = false;      // before it was met

private:
    Line* free_line();
    void publish(Line& line, protocol::FrameType type, uint32_t bytes);
};

class Shm : public protocol::Protocol {
public:
    using LaneClass = Lane;
    Shm() : Protocol(MPIP_PROTO_SHM) {}

    [[nodiscard]] int initialize();
    Card card(const taskinfo_t* task);
    bool reaches(const taskinfo_t* task, int rank) const;
    [[nodiscard]] int connect(taskinfo_t* task);
    [[nodiscard]] int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();
    int progress();
    int block(unsigned timeout_us);

private:
    [[nodiscard]] int attach(const taskinfo_t* task, int rank, process_t* proc);
    int poll(Lane& lane);
    void fail_ended_peers();
    void take_all(Lane& lane);
    void fail_other_programs();
    void run_timers();

    Segment own_;
    SegmentHead* head_ = nullptr;
    size_t block_bytes_ = 0;
    friend class Lane;
    std::vector<Lane*> lanes_;
    size_t piece_ = 0;
    unsigned idle_ = 0;
    std::chrono::steady_clock::time_point next_look_;
    std::chrono::steady_clock::time_point next_look_at_mappings_;
};

}  // namespace viaduct::shm
