// SPDX-License-Identifier: BSD-2-Clause
// Exported calls of the name service.
#include "vipl/c_api.hpp"
#include "vipl/name_service.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID) {
    return with_nic("VipNSInit", NicHandle, {}, [](Nic& nic) { return names_start(nic); });
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address,
                              VIP_ULONG NameIndex) {
    return with_nic("VipNSGetHostByName", NicHandle, {{Name, "Name"}, {Address, "Address"}},
                    [&](Nic& nic) { return names_by_name(nic, Name, NameIndex, Address); });
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name,
                              VIP_ULONG* NameLen) {
    return with_nic("VipNSGetHostByAddr", NicHandle, {{Address, "Address"}, {Name, "Name"}, {NameLen, "NameLen"}},
                    [&](Nic& nic) { return names_by_address(nic, *Address, Name, NameLen); });
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
    return with_nic("VipNSShutdown", NicHandle, {}, [](Nic& nic) { return names_stop(nic); });
}
