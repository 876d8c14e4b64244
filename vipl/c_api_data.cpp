// SPDX-License-Identifier: BSD-2-Clause
// Exported calls of the hot path, and the ones that wait for it.
#include "core/clock/clock.hpp"
#include "vipl/c_api.hpp"
#include "vipl/completion.hpp"
#include "vipl/cq.hpp"
#include "vipl/post.hpp"
#include "vipl/wait.hpp"

using namespace viaduct::vipl;
using viaduct::deadline_from_timeout;

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle) {
    return post_send(ViHandle, DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle) {
    return post_recv(ViHandle, DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) [[unlikely]]
        return VIP_INVALID_PARAMETER;
    return send_done(ViHandle, Descriptor);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) [[unlikely]]
        return VIP_INVALID_PARAMETER;
    return recv_done(ViHandle, Descriptor);
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
    Cq* cq = find_cq(CQHandle);
    if (cq == nullptr || ViHandle == nullptr || RecvQueue == nullptr) [[unlikely]]
        return VIP_INVALID_PARAMETER;
    return cq_take(*cq, CQHandle, ViHandle, RecvQueue);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return send_wait(ViHandle, deadline_from_timeout(Timeout), Descriptor); });
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor) {
    if (Descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return recv_wait(ViHandle, deadline_from_timeout(Timeout), Descriptor); });
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                     VIP_BOOLEAN* RecvQueue) {
    if (ViHandle == nullptr || RecvQueue == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return cq_wait(CQHandle, deadline_from_timeout(Timeout), ViHandle, RecvQueue); });
}
