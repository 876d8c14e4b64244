// SPDX-License-Identifier: BSD-2-Clause
// One VI and its pair of eager rings: the lane that carries frames to one peer. Under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/protocol/send.hpp"
#include "mpi-adi/transport/via/credits.hpp"
#include "mpi-adi/transport/via/ring_layout.hpp"
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
    bool frames_may_be_faster() const override { return ring.open; }
    void start_connecting() override;
    void request_push() override;
    bool flushed() override;
    bool is_connected() override;
    void cut() override;

    Nic& nic;
    VIP_VI_HANDLE vi = nullptr;
    Credits credits;
    RingPair ring;
    uint16_t next_packet_tosend = 0;
    uint16_t next_packet_expected = 0;
    int sends_outstanding = 0;
    uint32_t part_out = 0, part_in = 0;  // packets of the eager message that is on its way
    uint64_t known_since = UINT64_MAX;   // boot_ticks() when the card of the peer was read
    int expected_data = 0;               // frames of data for which receives are posted (spec/adi F12)
    bool prepared = false;               // the VI exists and its receives are posted
    bool connecting = false;             // on the list of connection attempts (on_demand.cpp)
    bool broken = false;                 // the connection broke before the peer's hello arrived
    const char* failure = nullptr;       // the reason why handle_events() fails it; nullptr: none
    bool inflow = false;                 // on the flow list (spec/adi C54)
    bool in_deferred = false;            // on the list of those with deferred work: receives to post, credits to report
    bool in_sending = false;  // on the list of those with sends to collect, where these have no completion queue
    bool refill_late = false;   // the reserve was not refilled at once: no buffer was free
    bool place_wanted = false;  // something waits for a place in the send queue
    bool refuses_receives = false;
    bool in_parts = false;  // what is longer than a buffer goes in several frames: it could not be written at once
    Lane* nextflow = nullptr;
    Lane* next_deferred = nullptr;
    Lane* next_sending = nullptr;
    vbuf* refused_head = nullptr;  // packets that the queue did not take: the connection is about to end

private:
    [[nodiscard]] bool send_eager_packet(const protocol::Payload& payload, size_t bytes, int tag, int rank,
                                         uint64_t context, int mode, bool tried);
    [[nodiscard]] bool put_data(const protocol::Frame& frame, const protocol::Payload& payload);
    [[nodiscard]] bool put_control(const protocol::Frame& frame, const protocol::Payload& payload);
};

}  // namespace viaduct::via
