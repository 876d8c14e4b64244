// SPDX-License-Identifier: BSD-2-Clause
// One VI of vipping with its descriptors and buffers: the same at both ends.
#pragma once

#include <vipl.h>

#include <memory>

#include "utils/common/nic.hpp"
#include "utils/vipping/ping.hpp"

namespace viaduct::vipping {

class Line {
public:
    // An Idle VI for messages of up to `bytes`, with all receives posted.
    Line(tools::Nic&, VIP_RELIABILITY_LEVEL level, uint32_t bytes, VIP_CQ_HANDLE recv_cq);
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    VIP_VI_HANDLE vi() const { return vi_; }
    std::byte* outgoing() const { return memory_.data() + kReceives * slot_ + kDescriptors; }
    // Sends the first `bytes` of outgoing(); waits until the send before it is complete.
    void send(uint32_t bytes);
    // False: nothing yet. Throws when the connection has ended.
    bool reap_send(VIP_ULONG wait_ms);
    void repost(VIP_DESCRIPTOR*);
    static std::byte* data_of(const VIP_DESCRIPTOR* d) {
        return static_cast<std::byte*>(d->DS[0].Local.Data.Address);
    }

private:
    static constexpr size_t kDescriptors = (kReceives + 1) * sizeof(VIP_DESCRIPTOR);
    VIP_DESCRIPTOR* descriptor(uint32_t index) const {
        return reinterpret_cast<VIP_DESCRIPTOR*>(memory_.data()) + index;
    }
    void fill(VIP_DESCRIPTOR*, std::byte* data, uint32_t bytes);

    uint32_t slot_;  // bytes of one buffer
    tools::Memory memory_;
    VIP_VI_HANDLE vi_ = nullptr;
    bool sending_ = false;
};

}  // namespace viaduct::vipping
