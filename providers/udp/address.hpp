// SPDX-License-Identifier: BSD-2-Clause
// IPv4 addresses as sockets and as the wire protocol have them, and what the configuration says of a NIC of udp: an
// interface or one of its addresses. Used by the agent, which only looks, and by the application, which opens it.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

#include "core/fault/fault_plan.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::udp {

// 20 bytes of IPv4, 8 of UDP.
inline constexpr uint32_t kHeaders = 28;

struct Spec {
    std::string text;       // as configured, or the interface that was found
    std::string interface;  // that has the address
    NicAddress address;     // IPv4 and the port that requests go to
    uint32_t mtu = 0;       // of the interface
    bool up = false;
    bool zero_copy = true;  // long payloads are read where they lie
    uint32_t connected = 0;  // peers that have a socket of their own, at most
    int busy_poll_us = 0;    // SO_BUSY_POLL of each socket; 0: as the system has it
    FaultPlan faults;   // of all that leaves

    uint32_t max_frame() const;
};

NicAddress from_socket_address(const sockaddr_in&);
sockaddr_in to_socket_address(const NicAddress&);
std::string text_of(const NicAddress&);  // "192.0.2.1:4792"

// The NICs that the settings name (udp.interfaces), without looking at each: "auto" is found out here.
std::vector<std::string> split_interfaces(const Settings&);
// The NIC of that interface or address; `index` says which fault plan is its. False: why not, and what to do about it.
bool read_spec(const Settings&, const std::string& text, size_t index, Spec* out, Rejection* why);
std::string text_of_ip(const NicAddress&);  // "192.0.2.1"
// Whether the system lists the interfaces now. If not, NICs that exist look missing. ok | out_of_resources (descriptors
// or memory are short, and a later call may succeed) | denied (it refuses netlink sockets).
Status list_of_interfaces();
// udp.interfaces = "auto".
bool interfaces_are_chosen_here(const Settings&);

// The address of the NIC behind an IPv4 address (network order) that a host name stands for. False: no route leads
// there from here.
bool find_host(const Spec&, uint32_t ip, NicAddress* out);

}  // namespace viaduct::udp
