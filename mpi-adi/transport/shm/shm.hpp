// SPDX-License-Identifier: BSD-2-Clause
// The module for processes that share memory (adi-facts 10, C9): lanes of layout.hpp below the stream
// protocol. A process maps the segments of the others through /proc, so nothing has a name that could stay
// behind; it hears of their end by pidfd.
#pragma once

#include <chrono>
#include <vector>

#include "core/shm/segment.hpp"
#include "mpi-adi/transport/shm/layout.hpp"
#include "mpi-adi/transport/protocol/stream.hpp"

namespace viaduct::shm {

// What a process tells the others.
struct Card {
    uint32_t magic;
    uint32_t lanes;
    uint64_t host;
    uint64_t block_bytes;
    uint32_t uid;
    int32_t pid;
    int32_t fd;
    uint32_t unused;
};

struct Peer : stream::Connection {
    Segment segment;  // theirs
    SegmentHead* head = nullptr;
    Lane out;
    uint32_t lines_sent = 0;
    uint32_t lines_room = kLines;  // number up to which lines are known to be free
    uint64_t blocks_sent = 0;
    uint64_t blocks_taken = 0;  // as last read
    Lane in;
    uint32_t lines_had = 0;
    uint32_t lines_told = 0;
    uint64_t blocks_had = 0;
    uint64_t blocks_told = 0;
    Fd pidfd;
    Fd folder;  // its own in /proc, where there is no pidfd
    bool ended = false;  // before it was met
};

class Shm : public stream::Module {
public:
    Shm() : Module(MPIP_PROTO_SHM) {}

    int initialize();
    Card card(const taskinfo_t* task);
    bool reaches(const taskinfo_t* task, int rank) const;
    int connect(taskinfo_t* task);
    int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();
    int progress();
    void block(unsigned timeout_us);

protected:
    bool put(stream::Connection& c, const stream::Frame& frame, const void* payload, const mpip_req_t* source,
             size_t offset) override;
    void cut(stream::Connection& c) override;

private:
    int attach(const taskinfo_t* task, int rank, process_t* proc);
    int poll(Peer& peer);
    void look_for_lost();
    void look_at_times();

    Segment own_;
    SegmentHead* head_ = nullptr;
    size_t block_bytes_ = 0;
    std::vector<Peer*> peers_;
    unsigned idle_ = 0;
    std::chrono::steady_clock::time_point next_look_;
};

}  // namespace viaduct::shm
