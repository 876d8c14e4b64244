// SPDX-License-Identifier: BSD-2-Clause
// A UDP socket of the doctor: it sends series of datagrams that are never fragmented, and counts what has come of the
// series of the other end. Everything of a datagram is checked: only what is whole and of a series counts.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <set>
#include <string>

#include "core/shm/fd.hpp"

namespace viaduct::doctor {

inline constexpr uint32_t kHeadersOfUdp = 28;
inline constexpr uint32_t kLeastProbe = 64, kMostProbe = 16'384;
inline constexpr uint32_t kMostOfSeries = 1000;

struct Series {
    uint32_t number = 0;
    uint32_t count = 1, bytes = kLeastProbe, gap_us = 0;
};

// What a series came to at the sender.
struct Sent {
    uint32_t sent = 0, too_large = 0;
    int error = 0;  // of the last one that was not sent otherwise
};

// And at the receiver.
struct Received {
    uint32_t count = 0, damaged = 0, twice = 0;
    sockaddr_in from{};
};

class Probe {
public:
    // At a port that the kernel chooses. Not valid: no socket is to be had there.
    explicit Probe(const in_addr& here);
    bool valid() const { return socket_.valid(); }
    uint16_t port() const;

    Sent send(const sockaddr_in& to, const Series&);
    // What has come until now, or until `wanted` are here, or the time is over.
    Received collect(uint32_t series, uint32_t wanted, int64_t timeout_ns);

private:
    Fd socket_;
};

// What the UDP port of requests there answers to a request of a version that does not exist: the version that is spoken
// there (docs/wire-format.md, "Other versions"); -1: nothing; -2: nothing listens there (ICMP).
int version_spoken_at(const sockaddr_in& to, int tries, int64_t each_ns);

// Another program, or another user's viaduct-udpd, has that port.
bool port_is_taken(const sockaddr_in& at);

// The MTU of the interface that has the address; 0: none has it.
uint32_t mtu_of_address(const in_addr&, std::string* interface);

}  // namespace viaduct::doctor
