// SPDX-License-Identifier: BSD-2-Clause
// Exported calls on NICs, protection tags and memory, and management.
#include "vipl/c_api.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/memory.hpp"
#include "vipl/name_service.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle) {
    const uint64_t begun = viaduct::trace::ticks();  // the record may begin inside
    const VIP_RETURN result = guarded("VipOpenNic", nullptr, {{DeviceName, "DeviceName"}, {NicHandle, "NicHandle"}},
                                      [&] { return open_nic(DeviceName, NicHandle); });
    if (!is_recorded()) return result;
    viaduct::trace::add_at(begun, What::open_nic, Phase::begin, nullptr, 0);
    viaduct::trace::add(What::open_nic, Phase::end, result == VIP_SUCCESS ? *NicHandle : nullptr, 0,
                        static_cast<uint32_t>(result));
    return result;
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle) {
    return recorded(What::close_nic, NicHandle, 0,
                    [&] { return guarded("VipCloseNic", NicHandle, {}, [&] { return close_nic(NicHandle); }); });
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* Attributes) {
    return with_nic("VipQueryNic", NicHandle, {{Attributes, "Attributes"}}, [&](Nic& nic) {
        query_nic(nic, Attributes);
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* ProtectionHandle) {
    return with_nic("VipCreatePtag", NicHandle, {{ProtectionHandle, "ProtectionHandle"}},
                    [&](Nic& nic) { return create_ptag(nic, ProtectionHandle); });
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE ProtectionHandle) {
    return with_nic("VipDestroyPtag", NicHandle, {}, [&](Nic& nic) { return destroy_ptag(nic, ProtectionHandle); });
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES* MemAttributes, VIP_MEM_HANDLE* MemHandle) {
    return recorded(What::register_mem, VirtualAddress, Length, [&] {
        return with_nic("VipRegisterMem", NicHandle, {{MemHandle, "MemHandle"}}, [&](Nic& nic) {
            return register_memory(nic, VirtualAddress, Length, MemAttributes, MemHandle);
        });
    });
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle) {
    return recorded(What::deregister_mem, VirtualAddress, 0, [&] {
        return with_nic("VipDeregisterMem", NicHandle, {},
                        [&](Nic& nic) { return deregister_memory(nic, VirtualAddress, MemHandle); });
    });
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                               VIP_MEM_ATTRIBUTES* MemAttributes) {
    return with_nic("VipSetMemAttributes", NicHandle, {{MemAttributes, "MemAttributes"}},
                    [&](Nic& nic) { return set_memory_attributes(nic, VirtualAddress, MemHandle, *MemAttributes); });
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES* MemAttributes) {
    return with_nic("VipQueryMem", NicHandle, {{MemAttributes, "MemAttributes"}},
                    [&](Nic& nic) { return query_memory(nic, VirtualAddress, MemHandle, MemAttributes); });
}

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler) {
    const viaduct::CancellationHeldOff whole_call;
    std::shared_ptr<Dispatcher> dispatcher;
    const VIP_RETURN found = with_nic("VipErrorCallback", NicHandle, {}, [&](Nic& nic) {
        dispatcher = nic.dispatcher;
        return VIP_SUCCESS;
    });
    // Without the pin: this may wait for a handler that is closing the NIC.
    if (found == VIP_SUCCESS) dispatcher->set_error_handler(Handler, Context);
    return found;
}

VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo) {
    return with_nic("VipQuerySystemManagementInfo", NicHandle, {{SysManInfo, "SysManInfo"}},
                    [&](Nic& nic) -> VIP_RETURN {
                        if (InfoType != VIP_SMI_AUTODISCOVERY)
                            return refuse(VIP_INVALID_PARAMETER, "ask for VIP_SMI_AUTODISCOVERY",
                                          "InfoType %lu is not known", InfoType);
                        return discover(nic, static_cast<VIP_AUTODISCOVERY_LIST*>(SysManInfo));
                    });
}
