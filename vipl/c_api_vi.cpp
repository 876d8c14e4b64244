// SPDX-License-Identifier: BSD-2-Clause
// Exported calls on VIs and completion queues that are not on the hot path (spec/calls 4.2, 4.6, 4.7): each checks
// pointers and handle, and calls the function that does the work.
#include "vipl/c_api.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;

namespace {

// For calls on a CQ handle. Does not pin the NIC: where it must stay open, `body` takes a NicPin.
template <class Body>
VIP_RETURN with_cq(const char* name, VIP_CQ_HANDLE handle, std::initializer_list<Argument> pointers,
                   Body&& body) noexcept {
    return guarded(name, handle, pointers, [&] {
        Cq* cq = find_cq(handle);
        return cq != nullptr ? body(*cq) : refuse_cq(handle);
    });
}

}  // namespace

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttributes, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle) {
    return recorded(
        What::create_vi, nullptr, 0,
        [&] {
            return with_nic(
                "VipCreateVi", NicHandle, {{ViAttributes, "ViAttributes"}, {ViHandle, "ViHandle"}},
                [&](Nic& nic) { return create_vi(nic, *ViAttributes, SendCQHandle, RecvCQHandle, ViHandle); });
        },
        [&](VIP_RETURN r) { return handle_if(r == VIP_SUCCESS, ViHandle); });
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
    return recorded(What::destroy_vi, ViHandle, 0, [&] {
        return with_vi("VipDestroyVi", ViHandle, {}, [&](Vi& vi) { return destroy_vi(vi, ViHandle); });
    });
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttributes,
                      VIP_BOOLEAN* SendQueueEmpty, VIP_BOOLEAN* RecvQueueEmpty) {
    return with_vi("VipQueryVi", ViHandle,
                   {{State, "State"},
                    {ViAttributes, "ViAttributes"},
                    {SendQueueEmpty, "SendQueueEmpty"},
                    {RecvQueueEmpty, "RecvQueueEmpty"}},
                   [&](Vi& vi) { return query_vi(vi, ViHandle, State, ViAttributes, SendQueueEmpty, RecvQueueEmpty); });
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttributes) {
    return with_vi("VipSetViAttributes", ViHandle, {{ViAttributes, "ViAttributes"}},
                   [&](Vi& vi) { return set_vi_attributes(vi, ViHandle, *ViAttributes); });
}

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle) {
    return with_nic("VipCreateCQ", NicHandle, {{CQHandle, "CQHandle"}},
                    [&](Nic& nic) { return create_cq(nic, EntryCount, CQHandle); });
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
    return with_cq("VipDestroyCQ", CQHandle, {}, [&](Cq& cq) { return destroy_cq(cq, CQHandle); });
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
    return with_cq("VipResizeCQ", CQHandle, {}, [&](Cq& cq) { return resize_cq(cq, CQHandle, EntryCount); });
}

namespace {

VIP_RETURN notify_on(const char* name, VIP_VI_HANDLE handle, bool receive, VIP_PVOID context, VIP_VI_CALLBACK handler) {
    const Argument given{reinterpret_cast<const void*>(handler), "Handler"};
    return with_vi(name, handle, {given}, [&](Vi& vi) -> VIP_RETURN {
        const NicPin pin(vi.nic, vi.handle, handle);
        if (!pin) return refuse_vi(handle);
        return pin->dispatcher->arm(vi, receive ? vi.core.recv : vi.core.send, handle, context, handler);
    });
}

}  // namespace

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
    return notify_on("VipSendNotify", ViHandle, false, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
    return notify_on("VipRecvNotify", ViHandle, true, Context, Handler);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler) {
    const Argument given{reinterpret_cast<const void*>(Handler), "Handler"};
    return with_cq("VipCQNotify", CQHandle, {given}, [&](Cq& cq) -> VIP_RETURN {
        const NicPin pin(cq.nic, cq.handle, CQHandle);
        if (!pin) return refuse_cq(CQHandle);
        return pin->dispatcher->arm(cq, CQHandle, Context, Handler);
    });
}

namespace {

VIP_RETURN not_supported(const char* name) {
    return guarded(name, nullptr, {}, [] {
        return refuse(VIP_ERROR_NOT_SUPPORTED, "remove the call; programs work without it",
                      "the call does nothing in this library");
    });
}

}  // namespace

// Calls that other implementations have beside VIPL 1.0 (docs/spec/calls.md, "Vendor calls").

// VipGetUserData and VipSetUserData: atomic, no lock; a handle that is not live gives NULL or is ignored.

VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) {
    const Vi* vi = find_vi(ViHandle);
    return vi != nullptr ? vi->user_data.load() : nullptr;
}

void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData) {
    Vi* vi = find_vi(ViHandle);
    if (vi != nullptr) vi->user_data.store(UserData);
}

VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE, VIP_EVENT_HANDLE*, VIP_ULONG, VIP_ULONG) { return not_supported("VipAddTagCQ"); }

VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE, VIP_EVENT_HANDLE, VIP_ULONG) { return not_supported("VipRemoveTagCQ"); }

VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE, VIP_BOOLEAN, VIP_BOOLEAN*) {
    return not_supported("VipPostDeferredSends");
}
