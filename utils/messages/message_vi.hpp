// SPDX-License-Identifier: BSD-2-Clause
// A VI with its registered memory: kReceives receives posted, one send descriptor. The caller connects it. One thread
// at a time. Used by the client (client.cpp) and by vipping's server.
#pragma once

#include <vipl.h>

#include <memory>

#include "utils/common/nic.hpp"
#include "utils/messages/ping.hpp"

namespace viaduct::messages {

class MessageVi {
public:
    // An Idle VI for messages of up to `bytes`, with all receives posted.
    MessageVi(tools::Nic&, VIP_RELIABILITY_LEVEL level, uint32_t bytes, VIP_CQ_HANDLE recv_cq);
    // Disconnects, takes back all descriptors, and only then destroys the VI.
    ~MessageVi();
    MessageVi(const MessageVi&) = delete;
    MessageVi& operator=(const MessageVi&) = delete;

    VIP_VI_HANDLE vi() const { return vi_; }
    std::byte* outgoing() const { return memory_.data() + kReceives * buffer_bytes_ + kDescriptors; }
    // Sends the first `bytes` of outgoing(). Waits until the send before it is complete, for 10 s, then throws
    // ToolError.
    void send(uint32_t bytes);
    // False: the send is not complete within `wait_ms`. True when none is open. Throws when the connection has ended.
    bool reap_send(VIP_ULONG wait_ms);
    // A receive descriptor that a Done or Wait call has returned.
    void repost(VIP_DESCRIPTOR*);
    static std::byte* data_of(const VIP_DESCRIPTOR* d) { return static_cast<std::byte*>(d->DS[0].Local.Data.Address); }

private:
    static constexpr size_t kDescriptors = (kReceives + 1) * sizeof(VIP_DESCRIPTOR);
    VIP_DESCRIPTOR* descriptor(uint32_t index) const {
        return reinterpret_cast<VIP_DESCRIPTOR*>(memory_.data()) + index;
    }
    void fill(VIP_DESCRIPTOR*, std::byte* data, uint32_t bytes);

    uint32_t buffer_bytes_;  // of each buffer; a multiple of 64
    tools::Memory memory_;
    VIP_VI_HANDLE vi_ = nullptr;
    bool sending_ = false;
};

}  // namespace viaduct::messages
