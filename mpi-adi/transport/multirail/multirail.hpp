// SPDX-License-Identifier: BSD-2-Clause
// The transport of several rails (spec/adi P5, P6, P15-P17, P52, N2): the message protocol over lanes that are several
// lanes each. `via` is this one when CMPI_VIA_NICS is set. A process is lost when it has ended or no lane has been up
// for CMPI_RAIL_TIMEOUT seconds. Under the engine's lock.
#pragma once

#include <memory>
#include <vector>

#include "mpi-adi/transport/multirail/multi_lane.hpp"

namespace viaduct::multirail {

class Multirail : public protocol::Protocol, private protocol::Memory {
public:
    using LaneClass = MultiLane;
    Multirail() : Protocol(MPIP_PROTO_VIA) {}

    // --- transport.cpp ---
    [[nodiscard]] int initialize();
    const Card& make_card(const taskinfo_t* task);
    bool reaches(const taskinfo_t* task, int rank) const;
    [[nodiscard]] int connect(taskinfo_t* task);
    [[nodiscard]] int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();
    size_t describe(int rank, mpip_rail* out, size_t room) const;

    // --- progress.cpp ---
    int progress();
    void block(unsigned timeout_us);

    // --- for its lanes ---
    bool opened() const { return opened_; }
    void note_suspect() { suspects_ = true; }
    void note_connecting() { connecting_ = true; }
    size_t most_stripe() const { return most_stripe_; }
    size_t whole_limit() const { return whole_limit_; }
    Clock::time_point last_pass() const { return last_pass_; }
    void note_measurement() { measures_ = true; }
    void add_stripes(int more) { stripes_ += more; }
    void restart(Transfer& t) { start_moving(t); }
    MultiLane* lane(size_t rank) const {
        const protocol::Peer* one = peer(rank);
        return one == nullptr ? nullptr : static_cast<MultiLane*>(one->lane.get());
    }

private:
    protocol::Registration* acquire(void* address, size_t bytes) override;
    void release(protocol::Registration* registration) override;
    size_t handles() const override { return kMostRails; }

    void attach(const taskinfo_t* task, int rank, process_t* proc);
    int work();
    void run_timers();
    void fail_if_lost(MultiLane& lane, Clock::time_point now);
    bool any_connecting() const;

    std::vector<std::unique_ptr<Rail>> rails_;
    std::vector<MultiLane*> lanes_;
    Card card_ = {};
    size_t most_stripe_ = 0;
    size_t whole_limit_ = 0;
    bool opened_ = false;  // the engine takes messages
    bool suspects_ = false;
    bool measures_ = false;
    bool connecting_ = false;
    int stripes_ = 0;  // under way, on all lanes
    Clock::time_point next_look_, next_probe_, last_pass_;
    std::chrono::microseconds sleep_{0};
    size_t next_rail_ = 0;
    unsigned idle_ = 0;
};

}  // namespace viaduct::multirail
