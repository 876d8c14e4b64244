// SPDX-License-Identifier: BSD-2-Clause
// What the configuration says of a port: a DPDK device and its arguments, for example
// "net_af_packet,iface=eth1" or "net_memif,socket=/run/pair.sock,role=server". Used by the agent, which only
// looks, and by the application, which opens it.
#pragma once

#include <string>
#include <vector>

#include "core/fault/fault_plan.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::acenic {

struct PortSpec {
    std::string text;            // as configured
    std::string driver;          // "net_af_packet"
    std::string arguments;       // what follows the driver, as the driver is to have it
    std::string interface;       // af_packet: its network interface
    std::string socket;          // memif, vhost: where the two processes meet, if that is a path
    std::string socket_name;     // memif: the same, path or abstract name
    bool joined = false;         // to one other process, which may be there or not
    bool listens = false;        // joined: the end that makes the socket
    bool reconnects = false;        // joined: the device exists only while the other end does
    bool needs_channel = false;  // one of the ports needs DPDK's channel between processes
    bool zero_copy = false;      // the driver copies while it sends: payload may stay where it is (zero_copy_tx.hpp)
    FaultPlan faults;    // of all that leaves
    NicAddress address;
    uint32_t mtu = 0;  // largest Ethernet payload
    bool up = false;
};

// The ports of acenic.ports, separated by ';'.
std::vector<std::string> split_ports(const char* setting);

// Looks at the system (never opens anything). False: why not, and what to do about it.
bool read_port(const std::string& text, PortSpec* out, Rejection* why);
// The port of that number, with its fault plan. "ports" and "faults" are the settings.
bool read_port(const char* ports, const char* faults, size_t index, PortSpec* out, Rejection* why);

// The port with that address: the agent's number of its NIC need not be its place in the settings.
bool find_port(const char* ports, const char* faults, const NicAddress& address, PortSpec* out, Rejection* why);

// The Ethernet address behind an IPv4 address on the port's network; asks the kernel's neighbour table, and
// waits for its answer a moment. `ip` in network order.
bool find_neighbour(const PortSpec&, uint32_t ip, NicAddress* out);

}  // namespace viaduct::acenic
