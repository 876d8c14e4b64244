// SPDX-License-Identifier: BSD-2-Clause
// See message_vi.hpp.
#include "utils/messages/message_vi.hpp"

#include "utils/common/error.hpp"
#include "utils/common/limits.hpp"

namespace viaduct::messages {

MessageVi::MessageVi(tools::Nic& nic, VIP_RELIABILITY_LEVEL level, uint32_t bytes, VIP_CQ_HANDLE recv_cq)
    : buffer_bytes_((bytes + 63) / 64 * 64),
      memory_(nic, kDescriptors + (kReceives + 1) * size_t{buffer_bytes_}, false) {
    VIP_VI_ATTRIBUTES wanted{};
    wanted.ReliabilityLevel = level;
    wanted.MaxTransferSize = bytes;
    tools::check(VipCreateVi(nic.handle(), &wanted, nullptr, recv_cq, &vi_), "VipCreateVi");
    for (uint32_t i = 0; i < kReceives; ++i) {
        VIP_DESCRIPTOR* d = descriptor(i);
        fill(d, memory_.data() + kDescriptors + i * size_t{buffer_bytes_}, buffer_bytes_);
        repost(d);
    }
}

MessageVi::~MessageVi() {
    VipDisconnect(vi_);
    VIP_DESCRIPTOR* flushed = nullptr;
    do {  // what was posted comes back flushed
        VipRecvDone(vi_, &flushed);
    } while (flushed != nullptr);
    VipSendDone(vi_, &flushed);
    VipDestroyVi(vi_);
}

void MessageVi::fill(VIP_DESCRIPTOR* d, std::byte* data, uint32_t bytes) {
    *d = VIP_DESCRIPTOR{};
    d->CS.SegCount = 1;
    d->CS.Length = bytes;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = memory_.handle();
    d->DS[0].Local.Length = bytes;
}

void MessageVi::repost(VIP_DESCRIPTOR* d) {
    d->CS.Status = 0;
    tools::check(VipPostRecv(vi_, d, memory_.handle()), "VipPostRecv");
}

void MessageVi::send(uint32_t bytes) {
    if (sending_ && !reap_send(tools::limit_ms(TimeLimit::message_send)))
        throw tools::ToolError("a send does not complete");
    VIP_DESCRIPTOR* d = descriptor(kReceives);
    fill(d, outgoing(), bytes);
    tools::check(VipPostSend(vi_, d, memory_.handle()), "VipPostSend");
    sending_ = true;
}

bool MessageVi::reap_send(VIP_ULONG wait_ms) {
    if (!sending_) return true;
    VIP_DESCRIPTOR* d = nullptr;
    const VIP_RETURN result = VipSendWait(vi_, wait_ms, &d);
    if (result == VIP_TIMEOUT) return false;
    sending_ = false;
    if (result == VIP_DESCRIPTOR_ERROR) throw tools::ToolError("the connection has ended");
    tools::check(result, "VipSendWait");
    return true;
}

}  // namespace viaduct::messages
