// SPDX-License-Identifier: BSD-2-Clause
// Addresses: which interfaces of this machine the module may use, what a process publishes of them, and to which
// addresses of a peer it connects.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/tcp/handshake.hpp"

namespace viaduct::tcp {

// An IPv6 address, or an IPv4 one mapped into it, and the port of the socket that listens there (host order).
struct Address {
    unsigned char ip[16];
    uint16_t port;
    uint8_t prefix;  // bits of the network part, in 128
    uint8_t loopback;
};
static_assert(sizeof(Address) == 20);

constexpr size_t kAddresses = 4;

// What a process publishes. Little-endian.
struct Card {
    uint32_t magic;
    uint32_t piece;  // most payload it takes in one frame
    uint64_t host;   // processes with the same number share a loopback interface
    // Known to the processes of this job; see handshake.hpp. In the card for processes of other jobs it is no secret,
    // but a number that tells any two processes apart.
    Secret secret;
    Address addresses[kAddresses];
    uint32_t count;  // of them
    uint32_t unused;
};
static_assert(sizeof(Card) <= 128);

// Addresses of the interfaces named (comma between them); of none named: the loopback interface, and where the job has
// `others` all that are up. At most kAddresses.
std::vector<Address> own_addresses(const std::string& names, bool others);

// The card of a process; count 0: none that can be used.
Card card_of(const taskinfo_t* task, int rank);
// Addresses to connect to a process with the card `theirs`, best first: the loopback interface where both share it,
// then networks they share, then others of the same family. Empty on one side exactly when on the other.
std::vector<Address> call_addresses(const Card& mine, const Card& theirs);

// For the system's calls.
socklen_t to_sockaddr(const Address& address, sockaddr_storage* out);
std::string text_of(const Address& address);

}  // namespace viaduct::tcp
