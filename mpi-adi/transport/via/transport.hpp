// SPDX-License-Identifier: BSD-2-Clause
// The transport: the message protocol over the lanes of a NIC. Everything is used under the engine's lock.
#pragma once

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/lane.hpp"
#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

class ViaTransport : public protocol::Protocol, public protocol::Memory {
public:
    using LaneClass = Lane;
    ViaTransport() : Protocol(MPIP_PROTO_VIA) {}

    // --- transport.cpp ---
    [[nodiscard]] int initialize();
    // The NIC alone, where it is one of several (transport/multirail).
    [[nodiscard]] int open(const char* name);
    // Queues and buffers for lanes to so many processes.
    [[nodiscard]] int set_up(taskinfo_t* task, int peers);
    // The same when processes join.
    [[nodiscard]] int join(taskinfo_t* task, int peers);
    // Adds a peer with a lane that is not connected.
    protocol::Peer& make_connection(int rank, process_t* proc, protocol::UpperLayer* upper = nullptr);
    void renew(protocol::Peer& peer);
    const protocol::LongRules& rules() const { return rules_; }
    const Card& make_card(const taskinfo_t* task);
    bool reaches(const taskinfo_t* task, int rank) const;
    [[nodiscard]] int connect(taskinfo_t* task);
    [[nodiscard]] int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();

    // --- progress.cpp ---
    int progress();
    int block(unsigned timeout_us);

    protocol::Registration* acquire(void* address, size_t bytes) override {
        return nic.registrations.acquire(address, bytes);
    }
    void release(protocol::Registration* held) override {
        nic.registrations.release(static_cast<Registration*>(held));
    }

    Nic nic;

private:
    void choose_methods();
    [[nodiscard]] int do_setup(taskinfo_t* task);
    void do_stop();
    void note_cards(const taskinfo_t* task);

    Card card_ = {};
    uint32_t busy_passes_ = 0;  // of progress
};

extern NeverDestroyed<ViaTransport> via_module;

inline Lane* connection_of(const process_t* proc) { return static_cast<Lane*>(protocol::peer_of(proc)->lane.get()); }

}  // namespace viaduct::via
