// SPDX-License-Identifier: BSD-2-Clause
// Asks hosts whether anything listens at the port that requests go to. A host at whose port nothing listens says so
// (ICMP: port unreachable); silence says nothing: a firewall, a cut cable, a host that is off. The questions leave
// from a socket of their own with no other traffic, so no ICMP message, true or forged, comes near the frames of a
// connection. Each carries the nonce of its request, which a refusal has to quote: a host that sends one has seen the
// question, and could answer the request itself in the same way. With a key none is sent (Outlet::ask).
//
// The socket has the address of the NIC, as the data sockets have it, and they have no other option that chooses a
// route: a question takes the way of the request.
//
// Where such a socket cannot be had, no question is asked. Used by UdpPort, under the engine's lock.
#pragma once

#include <cstdint>

#include "core/shm/segment.hpp"
#include "providers/wire/host.hpp"
#include "viaduct/types.hpp"

namespace viaduct::udp {

class PortProbe {
public:
    // nic: whose address the questions come from.
    explicit PortProbe(const NicAddress& nic) : nic_(nic) {}

    void ask(const NicAddress& to, const wire::Question&);
    // A question that its host has refused, each once. False: none more, or enough for now.
    bool next_refused(wire::Question*);
    uint64_t refused() const { return refused_; }
    int socket() const { return socket_.get(); }  // for tests: invalid before the first question

private:
    bool open();

    const NicAddress nic_;
    Fd socket_;
    uint32_t in_a_row_ = 0;  // errors taken since the last question
    uint64_t refused_ = 0;
};

}  // namespace viaduct::udp
