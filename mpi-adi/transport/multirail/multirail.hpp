// SPDX-License-Identifier: BSD-2-Clause
// The transport of several rails (spec/adi P5, P6, P15-P17, P52, N2): the message protocol over lanes that are several
// lanes each. `via` is this one when CMPI_VIA_NICS is set. A process without a lane is lost when it has ended or has
// become another program; where neither can be seen, when no lane has been up for CMPI_RAIL_TIMEOUT seconds
// (docs/adi-rails.md). Under the engine's lock.
#pragma once

#include <memory>
#include <vector>

#include "core/shm/segment.hpp"
#include "mpi-adi/transport/multirail/multi_lane.hpp"

namespace viaduct::multirail {

class Multirail : public protocol::Protocol, private protocol::Memory {
public:
    using LaneClass = MultiLane;
    Multirail() : Protocol(MPIP_PROTO_VIA) {}

    // --- transport.cpp ---
    // Opens the rails of CMPI_VIA_NICS; at least one has to work.
    [[nodiscard]] int initialize();
    // What this process publishes. Its own mapping is made here.
    const Card& make_card(const taskinfo_t* task);
    // By at least one rail.
    bool reaches(const taskinfo_t* task, int rank) const;
    // Makes the lanes to all processes that have none yet, and waits until each process is reached by a rail.
    [[nodiscard]] int connect(taskinfo_t* task);
    [[nodiscard]] int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();
    // The rails to a process; how many.
    size_t describe(int rank, mpip_rail* out, size_t room) const;

    // --- progress.cpp ---
    int progress();
    // Sleeps for a short time: there is no wait for several NICs.
    int block(unsigned timeout_us);

    // --- for its lanes ---
    bool opened() const { return opened_; }
    // The next pass takes the suspect lanes out.
    void note_suspect() { suspects_ = true; }
    // Some lane is down: passes look at the timers.
    void note_connecting() { connecting_ = true; }
    // In bytes, what all rails take: of a remote write or read, and of a message that is sent as one.
    size_t most_stripe() const { return most_stripe_; }
    size_t whole_limit() const { return whole_limit_; }
    // The last one while stripes were under way: what was found done after a gap says little of a lane's bandwidth.
    Clock::time_point last_pass() const { return last_pass_; }
    // A lane has found stripes done.
    void note_measurement() { measures_ = true; }
    // Under way.
    void add_stripes(int more) { stripes_ += more; }
    // Moves from its beginning a transfer whose lane has failed.
    void restart(Transfer& t) { start_moving(t); }
    // Its address, which each hello tells; 0: there is none.
    uint64_t own_mapping() const { return reinterpret_cast<uintptr_t>(own_mapping_.data()); }
    MultiLane* lane(size_t rank) const {
        const protocol::Peer* one = peer(rank);
        return one == nullptr ? nullptr : static_cast<MultiLane*>(one->lane.get());
    }

private:
    protocol::Registration* acquire(void* address, size_t bytes) override;
    void release(protocol::Registration* registration) override;
    size_t handles() const override { return kMostRails; }

    void attach(const taskinfo_t* task, int rank, process_t* proc);  // a MultiLane with its links, none connected yet
    int work();
    void run_timers();
    void fail_if_lost(MultiLane& lane, Clock::time_point now);
    bool any_connecting() const;

    std::vector<std::unique_ptr<Rail>> rails_;
    std::vector<MultiLane*> lanes_;  // one for each peer, which owns it
    Card card_ = {};
    Segment own_mapping_;  // there as long as this process is in the job: the others look for it (WatchedProcess)
    size_t most_stripe_ = 0;
    size_t whole_limit_ = 0;
    bool opened_ = false;  // the engine takes messages
    bool suspects_ = false;    // see note_suspect(),
    bool measures_ = false;    // note_measurement(),
    bool connecting_ = false;  // note_connecting()
    int stripes_ = 0;  // under way, on all lanes
    Clock::time_point next_look_, next_probe_;  // of run_timers()
    Clock::time_point last_pass_;
    std::chrono::microseconds sleep_{0};  // the last one; 0: something has arrived since
    size_t next_rail_ = 0;                // polled first
    unsigned idle_ = 0;                   // passes, for the timers
};

}  // namespace viaduct::multirail
