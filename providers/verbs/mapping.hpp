// SPDX-License-Identifier: BSD-2-Clause
// What VIPL's words mean in verbs and back, as functions without any I/O: completion statuses, addresses,
// ports, limits. spec/verbs is the source of every row; docs/verbs.md shows the tables.
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <vipl.h>

#include <cstdint>

#include "providers/verbs/settings.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// How a completion with an error is reported to the program.
struct Outcome {
    uint32_t bits = 0;        // VIP_STATUS_*_ERROR of the descriptor; 0: the descriptor counts as done
    bool descriptor = false;  // false: says nothing of this descriptor, which is flushed with the others
    bool report = false;      // the break is also reported as CONN_LOST: no descriptor has said why
    bool goes_on = false;     // Unreliable: only this message is lost, and the queue pair is made anew
    bool no_receive = false;  // the target had no receive posted: it is told so
    bool refused = false;     // the target's memory was out of bounds: it is told so
};

Outcome map_send(ibv_wc_status status, uint16_t level, bool fetches);
Outcome map_receive(ibv_wc_status status, uint16_t level);

// NIC addresses: "VB" and the four bytes of the IPv4 address of the port in rdma_cm.
NicAddress address_of(in_addr ip);
bool ip_of(const NicAddress& address, in_addr* out);

// Where a program that waits on a discriminator listens: the first free one of kPortTries ports from here on.
inline constexpr uint32_t kPortTries = 4;
inline constexpr uint32_t kPortRange = 4096;
uint16_t port_of(const NicSettings& settings, const EndAddress& end);

inline constexpr uint32_t kMaxDiscriminatorHere = 16;  // two of them must fit into 56 bytes of private data
inline constexpr uint32_t kMaxVi = 1024;

// What is known of a port before it is offered.
struct PortFacts {
    char device[64] = {};
    uint8_t port = 1;
    in_addr ip{};
    char interface[16] = {};
    ibv_transport_type transport = IBV_TRANSPORT_UNKNOWN;
    ibv_device_attr device_attr{};
    ibv_port_attr port_attr{};
    ibv_gid gid{};                  // all zero: not known
    uint64_t memlock = UINT64_MAX;  // bytes that may be pinned
};

// False: why not, and what to do about it.
bool describe_port(const PortFacts& facts, const NicSettings& settings, uint32_t index, NicInfo* out,
                   Rejection* why);

// The attributes that both ends must share.
Status compare(const ViTraits& mine, const ViTraits& theirs);

// Whether a port's GID stands for an IPv4 address (RoCE, iWARP).
bool is_gid_of(const ibv_gid& gid, in_addr ip);
const char* link_layer_name(const ibv_port_attr& port, ibv_transport_type transport);
uint32_t megabytes_per_second(const ibv_port_attr& port);

}  // namespace viaduct::verbs
