// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/discovery.hpp"

#include <cstring>
#include <vector>

namespace viaduct::via {

bool discovers(VIP_NIC_HANDLE nic, const unsigned char* address, size_t len) {
    constexpr VIP_ULONG kMost = 256;
    constexpr size_t kEach = sizeof(VIP_NET_ADDRESS) + 32;
    std::vector<unsigned char> room(kMost * kEach);
    std::vector<VIP_NET_ADDRESS*> pointers(kMost);
    for (size_t i = 0; i < kMost; ++i) pointers[i] = reinterpret_cast<VIP_NET_ADDRESS*>(&room[i * kEach]);
    VIP_AUTODISCOVERY_LIST list = {0, pointers.data(), kMost};
    if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) != VIP_SUCCESS) return false;
    for (size_t i = 0; i < list.NumAdAddrs && i < kMost; ++i) {
        if (pointers[i]->HostAddressLen == len && std::memcmp(pointers[i]->HostAddress, address, len) == 0) {
            return true;
        }
    }
    return false;
}

}  // namespace viaduct::via
