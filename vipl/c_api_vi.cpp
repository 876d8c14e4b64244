// SPDX-License-Identifier: BSD-2-Clause
// Exported calls on VIs and completion queues that are not on the hot path (spec/calls 4.2, 4.6, 4.7): each checks
// pointers and handle, and calls the function that does the work.
#include "vipl/c_api.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttributes, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle) {
    if (ViAttributes == nullptr || ViHandle == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) {
        return create_vi(nic, *ViAttributes, SendCQHandle, RecvCQHandle, ViHandle);
    });
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return destroy_vi(*vi, ViHandle); });
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttributes,
                      VIP_BOOLEAN* SendQueueEmpty, VIP_BOOLEAN* RecvQueueEmpty) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || State == nullptr || ViAttributes == nullptr || SendQueueEmpty == nullptr ||
        RecvQueueEmpty == nullptr)
        return VIP_INVALID_PARAMETER;
    return guarded(
        [&] { return query_vi(*vi, ViHandle, State, ViAttributes, SendQueueEmpty, RecvQueueEmpty); });
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttributes) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || ViAttributes == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return set_vi_attributes(*vi, ViHandle, *ViAttributes); });
}

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle) {
    if (CQHandle == nullptr) return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) { return create_cq(nic, EntryCount, CQHandle); });
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
    Cq* cq = find_cq(CQHandle);
    if (cq == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return destroy_cq(*cq, CQHandle); });
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
    Cq* cq = find_cq(CQHandle);
    if (cq == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return resize_cq(*cq, CQHandle, EntryCount); });
}

namespace {

VIP_RETURN notify_on(VIP_VI_HANDLE handle, bool receive, VIP_PVOID context, VIP_VI_CALLBACK handler) {
    Vi* vi = find_vi(handle);
    if (vi == nullptr || handler == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&]() -> VIP_RETURN {
        const NicPin pin(vi->nic, vi->handle, handle);
        if (!pin) return VIP_INVALID_PARAMETER;
        return pin->dispatcher->arm(*vi, receive ? vi->core.recv : vi->core.send, handle, context, handler);
    });
}

}  // namespace

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
    return notify_on(ViHandle, false, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
    return notify_on(ViHandle, true, Context, Handler);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler) {
    Cq* cq = find_cq(CQHandle);
    if (cq == nullptr || Handler == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&]() -> VIP_RETURN {
        const NicPin pin(cq->nic, cq->handle, CQHandle);
        if (!pin) return VIP_INVALID_PARAMETER;
        return pin->dispatcher->arm(*cq, CQHandle, Context, Handler);
    });
}

// Calls that other implementations have beside VIPL 1.0 (docs/spec/calls.md, "Vendor calls").

VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) {
    const Vi* vi = find_vi(ViHandle);
    return vi != nullptr ? vi->user_data.load() : nullptr;
}

void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData) {
    Vi* vi = find_vi(ViHandle);
    if (vi != nullptr) vi->user_data.store(UserData);
}

VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE, VIP_EVENT_HANDLE*, VIP_ULONG, VIP_ULONG) {
    return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE, VIP_EVENT_HANDLE, VIP_ULONG) { return VIP_ERROR_NOT_SUPPORTED; }

VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE, VIP_BOOLEAN, VIP_BOOLEAN*) { return VIP_ERROR_NOT_SUPPORTED; }
