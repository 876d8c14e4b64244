// SPDX-License-Identifier: BSD-2-Clause
// Machines on the same Ethernet: what the kernel knows of one, and which ones answer for an address (ARP).
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

namespace viaduct::doctor {

enum class Neighbour { unknown, silent, present };

// As the kernel's table has it (/proc/net/arp): silent, where it has asked and nothing has answered.
Neighbour neighbour_at(const in_addr&);

struct Owners {
    bool asked = false;             // false: that needs CAP_NET_RAW, or an Ethernet
    std::vector<std::string> macs;  // of the machines that say the address is theirs
};

// Asks on that interface. An address of this host itself: the others that have it.
Owners owners_of(const in_addr& ip, const std::string& interface);

}  // namespace viaduct::doctor
