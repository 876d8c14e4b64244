// SPDX-License-Identifier: BSD-2-Clause
// Exported extensions (viaduct/ext.h).
#include <viaduct/ext.h>

#include "core/config/paths.hpp"
#include "core/text/code_names.hpp"
#include "vipl/allocation.hpp"
#include "vipl/c_api.hpp"
#include "vipl/post.hpp"
#include "vipl/status.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;

const char* VipxVersion(void) { return viaduct::kVersion; }

const char* VipxErrorString(VIP_RETURN Code) {
    const char* name = viaduct::name_of_return(static_cast<uint32_t>(Code)).name;
    return name != nullptr ? name : "unknown VIP_RETURN";
}

const char* VipxErrorMeaning(VIP_RETURN Code) {
    const char* meaning = viaduct::name_of_return(static_cast<uint32_t>(Code)).meaning;
    return meaning != nullptr ? meaning : "no call of this library returns it";
}

const char* VipxAsyncErrorString(VIP_ERROR_CODE Code) {
    const char* name = viaduct::name_of_error(static_cast<uint32_t>(Code)).name;
    return name != nullptr ? name : "unknown VIP_ERROR_CODE";
}

VIP_RETURN VipxStatusString(VIP_UINT32 Status, VIP_CHAR* Text, VIP_ULONG Bytes) {
    if (Text == nullptr || Bytes == 0) return VIP_INVALID_PARAMETER;
    viaduct::write_status_names(Status, Text, Bytes);
    return VIP_SUCCESS;
}

VIP_RETURN VipxLastError(VIP_PVOID Handle, VIP_CHAR* Text, VIP_ULONG Bytes) { return last_error(Handle, Text, Bytes); }

VIP_RETURN VipxAllocMemory(VIP_NIC_HANDLE NicHandle, VIP_ULONG Bytes, VIP_ULONG Alignment,
                           VIP_MEM_ATTRIBUTES* MemAttribs, VIP_PVOID* Address, VIP_MEM_HANDLE* MemoryHandle) {
    return with_nic(
        "VipxAllocMemory", NicHandle, {{Address, "Address"}, {MemoryHandle, "MemoryHandle"}},
        [&](Nic& nic) { return allocate_memory(nic, Bytes, Alignment, MemAttribs, Address, MemoryHandle); });
}

VIP_RETURN VipxFreeMemory(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle) {
    return with_nic("VipxFreeMemory", NicHandle, {}, [&](Nic& nic) { return free_memory(nic, Address, MemoryHandle); });
}

VIP_RETURN VipxQueryAtomics(VIP_NIC_HANDLE NicHandle, VIP_ULONG* Widths) {
    return with_nic("VipxQueryAtomics", NicHandle, {{Widths, "Widths"}}, [&](Nic& nic) -> VIP_RETURN {
        *Widths = viaduct::atomic_widths(nic.info);
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryAtomicScope(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Processors) {
    return with_nic("VipxQueryAtomicScope", NicHandle, {{Processors, "Processors"}}, [&](Nic& nic) -> VIP_RETURN {
        *Processors = (nic.info.capabilities & viaduct::kCapAtomicsGlobal) != 0 ? VIP_TRUE : VIP_FALSE;
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryPinned(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Pinned) {
    return with_nic("VipxQueryPinned", NicHandle, {{Pinned, "Pinned"}}, [&](Nic& nic) -> VIP_RETURN {
        *Pinned = (nic.info.capabilities & viaduct::kCapUnpinned) != 0 ? VIP_FALSE : VIP_TRUE;
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxSetGiveWay(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN On) {
    return with_nic("VipxSetGiveWay", NicHandle, {}, [&](Nic& nic) -> VIP_RETURN {
        nic.gives_way.store(On != VIP_FALSE, std::memory_order_relaxed);
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipxQueryMapped(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress, VIP_MEM_HANDLE RemoteHandle,
                           VIP_ULONG Bytes, void** Here) {
    if (Here == nullptr) return fail_null("VipxQueryMapped", ViHandle, "Here");
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
    return with_vi("VipxSetFaultPlan", ViHandle, {}, [&](Vi& vi) -> VIP_RETURN {
        const NicPin pin(vi.nic, vi.handle, ViHandle);
        if (!pin) return refuse_vi(ViHandle);
        if (vi.state() != VIP_STATE_CONNECTED)
            return refuse(VIP_INVALID_STATE, "connect the VI first", "the VI is %s, not Connected",
                          viaduct::name_of_state(vi.state()));
        if ((pin->info.capabilities & viaduct::kCapFaultPlan) == 0)
            return refuse(VIP_ERROR_NOT_SUPPORTED, "use paramnet, udp or acenic", "NIC %s takes no fault plan",
                          pin->info.name);
        const char* plan = Plan != nullptr ? Plan : "";
        const viaduct::Status status = pin->ops->set_fault_plan(vi.core, plan);
        if (status == viaduct::Status::invalid)
            return refuse(VIP_INVALID_PARAMETER, "plans are described in viaduct(7)",
                          "the plan '%.200s' cannot be understood by NIC %s", plan, pin->info.name);
        return to_return(CallKind::extension, status);
    });
}
