// SPDX-License-Identifier: BSD-2-Clause
// A connection between the two processes of a pair, over vipl.h alone, and loops that use it as programs do.
// Both sides call every function in the same order.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <string>
#include <vector>

#include "utils/measure/pair.hpp"

namespace viaduct::bench {

using namespace measure;

// How a side learns that something has arrived.
enum class Arrival { poll_queue, poll_cq, wait };

class ViaLink {
public:
    // Connected, with all receives posted. `device` is a name for VipOpenNic. `idle` more VIs are connected
    // beside the one that is used, and share its completion queue.
    ViaLink(Pair&, const std::string& device, Arrival arrival, uint32_t idle = 0);
    ~ViaLink();
    ViaLink(const ViaLink&) = delete;
    ViaLink& operator=(const ViaLink&) = delete;

    size_t largest() const { return largest_; }

    // Send and receive: half round trip, ns. With `pause_ns` each side lets the other wait so long before it
    // answers, and the pause is taken off again: what remains is the way of a message to a sleeping thread.
    double ping_pong(size_t bytes, int64_t pause_ns = 0);
    double rdma_ping_pong(size_t bytes);  // RDMA write, the target polls its memory: half round trip, ns
    double stream(size_t bytes);          // send and receive, a window of messages one way: ns per message

private:
    void check(VIP_RETURN result, const char* call);
    void open(const std::string& device, uint32_t idle);
    VIP_VI_HANDLE connected_vi();
    void post_receive(VIP_DESCRIPTOR* d);
    void send(size_t bytes);
    void rdma_write(size_t bytes);
    void post_send(VIP_DESCRIPTOR* d);
    void reap_send();
    VIP_DESCRIPTOR* receive();  // the next message; its descriptor must be posted again

    Pair& pair_;
    Arrival arrival_;
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_NIC_ATTRIBUTES attributes_ = {};
    VIP_VI_HANDLE vi_ = nullptr;
    std::vector<VIP_VI_HANDLE> idle_;
    VIP_CQ_HANDLE cq_ = nullptr;
    VIP_MEM_HANDLE memory_ = 0;
    size_t largest_ = 0;
    std::byte* base_ = nullptr;  // descriptors, then what is sent, then what is received
    std::byte* outgoing_ = nullptr;
    std::byte* incoming_ = nullptr;
    uint64_t remote_incoming_ = 0;
    VIP_MEM_HANDLE remote_memory_ = 0;
    uint32_t next_send_ = 0;
    uint32_t unreaped_ = 0;
};

}  // namespace viaduct::bench
