// SPDX-License-Identifier: BSD-2-Clause
// The control half, in the agent: the configured ports, as the system shows them. DPDK is not needed here.
#include <vipl.h>

#include <cstdio>

#include "core/memory/region_table.hpp"
#include "providers/acenic/nic.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint64_t kMaxTransfer = 4u << 20;  // spec/compat N5, N6
constexpr uint64_t kMaxRegisterBytes = uint64_t{1} << 40;

NicInfo describe_nic(uint16_t index, const PortSpec& port) {
    NicInfo nic;
    std::snprintf(nic.name, sizeof nic.name, "acenic%u", index);
    std::snprintf(nic.provider, sizeof nic.provider, "acenic");
    std::snprintf(nic.description, sizeof nic.description, "VI over Ethernet: %.70s", port.text.c_str());
    nic.address = port.address;
    nic.index = index;
    nic.capabilities = kCapRdmaWrite | kCapRdmaRead | kCapImmediate | kCapAtomics | kCapOwnWakeup |
                       kCapFaultPlan | kCapAtomicsGlobal;
    nic.hardware_version = 6;  // Tigon-II (spec/tigon b.1)
    nic.provider_version = 1;
    nic.link_up = port.up ? 1 : 0;
    nic.reliability_mask =
        VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    nic.rdma_read_mask = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    nic.max_register_bytes = kMaxRegisterBytes;
    nic.max_register_regions = kMaxRegions;
    nic.max_register_block_bytes = kMaxRegisterBytes;
    nic.max_vi = kMaxVi;
    nic.max_descriptors_per_queue = kDepth;
    nic.max_segments = 252;
    nic.max_cq = 1024;
    nic.max_cq_entries = 65536;
    nic.max_transfer = kMaxTransfer;
    nic.native_mtu = port.mtu;
    nic.max_ptags = 1024;
    nic.send = OperationLimit{kMaxTransfer, 1, 252, 0, 0};
    nic.put = nic.get = OperationLimit{kMaxTransfer, 1, 251, 0, 0};
    nic.atomic = OperationLimit{8, 4, 1, 0, 0};
    nic.profile = Profile{3000, 800, 50, 0};
    return nic;
}

}  // namespace

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    const char* const ports = settings.get("ports", "");
    const auto count = static_cast<uint16_t>(split_ports(ports).size());
    for (uint16_t index = 0; index != count; ++index) {
        PortSpec port;
        Rejection why;
        if (read_port(ports, settings.get("faults", ""), index, &port, &why)) {
            sink.offer(describe_nic(index, port));
        } else {
            sink.reject(why);
        }
    }
    return Status::ok;
}

}  // namespace viaduct::acenic
