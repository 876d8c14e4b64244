// SPDX-License-Identifier: BSD-2-Clause
// What is the same in every provider made of this engine: what a NIC can do, and the table of operations.
#include <vipl.h>

#include "core/memory/region_table.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::packet {

namespace {

constexpr uint64_t kMaxTransfer = 4u << 20;  // spec/compat N5, N6
constexpr uint64_t kMaxRegisterBytes = uint64_t{1} << 40;

}  // namespace

NicInfo common_info() {
    NicInfo nic;
    nic.capabilities = kCapRdmaWrite | kCapRdmaRead | kCapImmediate | kCapAtomics | kCapOwnWakeup |
                       kCapFaultPlan | kCapAtomicsGlobal;
    nic.provider_version = 1;
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
    nic.max_ptags = 1024;
    nic.send = OperationLimit{kMaxTransfer, 1, 252, 0, 0};
    nic.put = nic.get = OperationLimit{kMaxTransfer, 1, 251, 0, 0};
    nic.atomic = OperationLimit{8, 4, 1, 0, 0};
    nic.profile = Profile{3000, 800, 50, 0};
    return nic;
}

}  // namespace viaduct::packet
