// SPDX-License-Identifier: BSD-2-Clause
// Exported extensions (viaduct/ext.h).
#include <viaduct/ext.h>

#include "core/config/paths.hpp"
#include "vipl/allocation.hpp"
#include "vipl/c_api.hpp"
#include "vipl/post.hpp"
#include "vipl/status.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;

const char* VipxVersion(void) { return viaduct::kVersion; }

VIP_RETURN VipxAllocMemory(VIP_NIC_HANDLE NicHandle, VIP_ULONG Bytes, VIP_ULONG Alignment,
                           VIP_MEM_ATTRIBUTES* MemAttribs, VIP_PVOID* Address, VIP_MEM_HANDLE* MemoryHandle) {
    if (Address == nullptr || MemoryHandle == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) {
        return allocate_memory(nic, Bytes, Alignment, MemAttribs, Address, MemoryHandle);
    });
}

VIP_RETURN VipxFreeMemory(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle) {
    return with_nic(NicHandle, [&](Nic& nic) { return free_memory(nic, Address, MemoryHandle); });
}

VIP_RETURN VipxQueryAtomics(VIP_NIC_HANDLE NicHandle, VIP_ULONG* Widths) {
    if (Widths == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) -> VIP_RETURN {
        *Widths = viaduct::atomic_widths(nic.info);
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryAtomicScope(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Processors) {
    if (Processors == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) -> VIP_RETURN {
        *Processors = (nic.info.capabilities & viaduct::kCapAtomicsGlobal) != 0 ? VIP_TRUE : VIP_FALSE;
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryPinned(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Pinned) {
    if (Pinned == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) -> VIP_RETURN {
        *Pinned = (nic.info.capabilities & viaduct::kCapUnpinned) != 0 ? VIP_FALSE : VIP_TRUE;
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryMapped(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress, VIP_MEM_HANDLE RemoteHandle,
                           VIP_ULONG Bytes, void** Here) {
    if (Here == nullptr) return VIP_INVALID_PARAMETER;
    return query_mapped(ViHandle, RemoteAddress, RemoteHandle, Bytes, Here);
}

VIP_RETURN VipxPostSendBatch(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors, VIP_ULONG Count,
                             VIP_MEM_HANDLE MemoryHandle) {
    return post_send_batch(ViHandle, Descriptors, Count, MemoryHandle);
}

VIP_RETURN VipxPostRecvBatch(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors, VIP_ULONG Count,
                             VIP_MEM_HANDLE MemoryHandle) {
    return post_recv_batch(ViHandle, Descriptors, Count, MemoryHandle);
}

VIP_RETURN VipxSetFaultPlan(VIP_VI_HANDLE ViHandle, const char* Plan) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&]() -> VIP_RETURN {
        const NicPin pin(vi->nic, vi->handle, ViHandle);
        if (!pin) return VIP_INVALID_PARAMETER;
        if (vi->state() != VIP_STATE_CONNECTED) return VIP_INVALID_STATE;
        if ((pin->info.capabilities & viaduct::kCapFaultPlan) == 0) return VIP_ERROR_NOT_SUPPORTED;
        return to_return(CallKind::extension,
                         pin->ops->set_fault_plan(vi->core, Plan != nullptr ? Plan : ""));
    });
}
