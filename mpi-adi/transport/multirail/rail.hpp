// SPDX-License-Identifier: BSD-2-Clause
// A rail: a transport that is one of several. It is whole, with all that it does for its lanes where it is alone; here
// its protocol hands what arrives to protocol::UpperLayer.
#pragma once

#include <memory>
#include <string>

#include "mpi-adi/transport/multirail/wire.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::multirail {

class Rail {
public:
    virtual ~Rail() = default;

    virtual const std::string& name() const = 0;  // as it was given
    virtual std::string device() const = 0;       // the same for two names of one device
    // Fills this rail's part of the card; whether the rail reaches a process with such a card.
    virtual void describe(const taskinfo_t* task, Card* card, size_t at) = 0;
    virtual bool reaches(const taskinfo_t* task, int rank, const Card& mine, const Card& theirs, size_t at) const = 0;
    // Queues and buffers for lanes to so many processes; again when processes join.
    [[nodiscard]] virtual int set_up(taskinfo_t* task, int peers) = 0;
    // A lane to a process, which has a proc of its own here.
    virtual protocol::Peer& make_lane(const taskinfo_t* task, const Card& theirs, size_t at, int rank, process_t* proc,
                                      protocol::UpperLayer& upper) = 0;
    // Begins to connect the lane, also after a failure. The upper layer is told of success and failure.
    virtual void connect(protocol::Peer& peer) = 0;
    virtual int progress() = 0;
    // How long messages go where this is the only one; nullptr: in frames alone.
    virtual const protocol::LongRules* rules() const { return nullptr; }
    virtual protocol::Memory* memory() { return nullptr; }
    virtual size_t most_transfer() const { return SIZE_MAX; }
    // The longest message that a lane always takes as one.
    virtual size_t whole_limit() const = 0;
    // Disconnects all lanes and closes.
    virtual void finalize() = 0;
};

// A NIC, opened. nullptr: it cannot be, and mpip_last_error() says why.
std::unique_ptr<Rail> open_via_rail(const char* nic);
// The module of sockets, for processes that it does not serve by itself.
std::unique_ptr<Rail> open_tcp_rail();

}  // namespace viaduct::multirail
