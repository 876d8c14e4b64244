// SPDX-License-Identifier: BSD-2-Clause
// Exported calls of the hot path, and the ones that wait for it.
#include "core/clock/clock.hpp"
#include "vipl/c_api.hpp"
#include "vipl/completion.hpp"
#include "vipl/cq.hpp"
#include "vipl/post.hpp"
#include "vipl/wait.hpp"
#include "vipl/why.hpp"

using namespace viaduct::vipl;
using viaduct::deadline_from_timeout;

namespace {

[[gnu::cold, gnu::noinline]] VIP_RETURN refuse_cq_call(const char* name, VIP_CQ_HANDLE cq, const void* vi,
                                                       const void* receive) {
    if (vi == nullptr) return fail_null(name, cq, "ViHandle");
    if (receive == nullptr) return fail_null(name, cq, "RecvQueue");
    return fail_handle(name, "CQHandle", cq, viaduct::HandleKind::cq);
}

}  // namespace

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle) {
    return post_send(ViHandle, DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle) {
    return post_recv(ViHandle, DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) [[unlikely]]
        return fail_null("VipSendDone", ViHandle, "Descriptor");
    return send_done(ViHandle, Descriptor);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) [[unlikely]]
        return fail_null("VipRecvDone", ViHandle, "Descriptor");
    return recv_done(ViHandle, Descriptor);
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
    Cq* cq = find_cq(CQHandle);
    if (cq == nullptr || ViHandle == nullptr || RecvQueue == nullptr) [[unlikely]]
        return refuse_cq_call("VipCQDone", CQHandle, ViHandle, RecvQueue);
    return cq_take(*cq, CQHandle, ViHandle, RecvQueue);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) return fail_null("VipSendWait", ViHandle, "Descriptor");
    return recorded_wait(What::send_wait, ViHandle, Descriptor, [&] {
        return guarded([&] { return send_wait(ViHandle, deadline_from_timeout(Timeout), Descriptor); });
    });
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) return fail_null("VipRecvWait", ViHandle, "Descriptor");
    return recorded_wait(What::recv_wait, ViHandle, Descriptor, [&] {
        return guarded([&] { return recv_wait(ViHandle, deadline_from_timeout(Timeout), Descriptor); });
    });
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                     VIP_BOOLEAN* RecvQueue) {
    if (ViHandle == nullptr || RecvQueue == nullptr) return refuse_cq_call("VipCQWait", CQHandle, ViHandle, RecvQueue);
    return recorded(
        What::cq_wait, CQHandle, 0,
        [&] { return guarded([&] { return cq_wait(CQHandle, deadline_from_timeout(Timeout), ViHandle, RecvQueue); }); },
        [&](VIP_RETURN r) { return handle_if(r == VIP_SUCCESS, ViHandle); });
}
