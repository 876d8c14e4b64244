// SPDX-License-Identifier: BSD-2-Clause
// One VI, and the slots beside it: what carries frames to one peer. Under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/protocol/send.hpp"
#include "mpi-adi/transport/via/credits.hpp"
#include "mpi-adi/transport/via/eager_ring.hpp"
#include "mpi-adi/transport/via/vbuf.hpp"

namespace viaduct::via {

class Nic;

class Lane final : public protocol::Lane {
public:
    Lane(protocol::Peer& of, Nic& on) : protocol::Lane(of), nic(on) {}

    // lane.cpp
    bool put(const protocol::Frame& frame, const protocol::Payload& payload) override;
    [[nodiscard]] bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode);
    size_t eager_limit(bool contiguous) const override;
    size_t eager_part(bool contiguous) const override;
    size_t data_part(protocol::Transfer& t) const override;
    void expect(size_t bytes) override;
    size_t transfer(bool write, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                    protocol::Transfer& t) override;
    bool frames_may_win() const override { return slots.open; }
    void reach_out() override;
    void want_push() override;
    bool flushed() override;
    bool is_whole() override;
    void cut() override;

    Nic& nic;
    VIP_VI_HANDLE vi = nullptr;
    Credits credits;
    SlotPair slots;
    uint16_t next_packet_tosend = 0;
    uint16_t next_packet_expected = 0;
    int sends_outstanding = 0;
    uint32_t part_out = 0, part_in = 0;  // packets of the eager message that is on its way
    int awaited = 0;                     // frames of data for which receives are posted (spec/adi F12)
    bool equipped = false;               // the VI has its receives
    bool opening = false;                // to be connected, because somebody wants to send (on_demand.cpp)
    bool broken = false;                 // the connection broke before the peer said hello
    const char* doomed = nullptr;        // why it will be failed
    bool inflow = false;                 // on the flow list (spec/adi C54)
    bool in_chores = false;              // on the list of those with receives to post or credits to tell
    bool in_sending = false;  // on the list of those with sends to collect, where these have no completion queue
    bool answer_late = false;   // no buffer was left to refill the reserve at once
    bool place_wanted = false;  // something waits for a place in the send queue
    bool refuses_receives = false;
    bool in_parts = false;  // what is longer than a buffer goes in several frames: it could not be written at once
    Lane* nextflow = nullptr;
    Lane* next_chore = nullptr;
    Lane* next_sending = nullptr;
    vbuf* refused_head = nullptr;  // packets that the queue did not take: the connection is about to end

private:
    [[nodiscard]] bool MPID_VIA_eager_send(const protocol::Payload& payload, size_t bytes, int tag, int rank,
                                           uint64_t context, int mode, bool tried);
    size_t MPID_VIA_long_send(bool write, const protocol::PieceList& near, const protocol::PieceList& far,
                              size_t most, protocol::Transfer& t);
    [[nodiscard]] bool put_data(const protocol::Frame& frame, const protocol::Payload& payload);
    [[nodiscard]] bool put_control(const protocol::Frame& frame, const protocol::Payload& payload);
};

}  // namespace viaduct::via
