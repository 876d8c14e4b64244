// SPDX-License-Identifier: BSD-2-Clause
// The control half, in the agent: the configured ports, as the system shows them. DPDK is not needed here.
#include <cstdio>

#include "core/shm/fd.hpp"
#include "providers/acenic/configured_port.hpp"
#include "providers/acenic/port_spec.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::acenic {

namespace {

NicInfo describe_nic(uint16_t index, const PortSpec& port) {
    NicInfo nic = packet::common_info();
    std::snprintf(nic.name, sizeof nic.name, "acenic%u", index);
    std::snprintf(nic.provider, sizeof nic.provider, "acenic");
    std::snprintf(nic.description, sizeof nic.description, "VI over Ethernet: %.70s", port.text.c_str());
    nic.address = port.address;
    nic.index = index;
    nic.hardware_version = 6;  // Tigon-II (spec/tigon b.1)
    nic.link_up = port.up ? 1 : 0;
    nic.native_mtu = port.mtu;
    return nic;
}

}  // namespace

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    const char* const ports = settings.get("ports", "");
    const auto count = static_cast<uint16_t>(split_ports(ports).size());
    bool all_seen = true;
    for (uint16_t index = 0; index != count; ++index) {
        PortSpec port;
        Rejection why;
        if (read_port(ports, settings.get("faults", ""), index, &port, &why)) {
            sink.offer(describe_nic(index, port));
        } else {
            sink.reject(why);
            all_seen = all_seen && descriptors_left(1);
        }
    }
    return all_seen ? Status::ok : Status::out_of_resources;
}

}  // namespace viaduct::acenic
