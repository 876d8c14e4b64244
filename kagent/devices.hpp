// SPDX-License-Identifier: BSD-2-Clause
// The network interfaces of this host and their addresses, asked of the kernel through libnl. Used by the
// name service and for status; on the agent's one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "viaduct/types.hpp"

namespace viaduct::kagent {

// As the kernel writes hardware addresses.
std::string text_of_address(const NicAddress&);

struct LinkInfo {
    std::string name;
    std::string kind;     // "bridge", "veth", ... ; empty: a device of its own
    std::string driver;   // of the hardware, where there is some
    std::string address;  // hardware address as text
    unsigned mtu = 0;
    bool up = false;       // switched on
    bool running = false;  // and has a carrier
    bool loopback = false;
};

// An address of an interface: 4 or 16 bytes.
struct HostIp {
    std::array<uint8_t, 16> bytes{};
    uint32_t length = 0;
    bool operator==(const HostIp&) const = default;
};

struct Devices {
    std::vector<LinkInfo> links;
    std::vector<HostIp> addresses;
    std::string error;  // why the lists are empty

    static Devices look();
};

}  // namespace viaduct::kagent
