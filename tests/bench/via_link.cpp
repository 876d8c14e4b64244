// SPDX-License-Identifier: BSD-2-Clause
#include "via_link.hpp"

#include <viaduct/ext.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "utils/measure/limits.hpp"

namespace viaduct::bench {

namespace {

constexpr uint32_t kReceives = 256;  // always posted: VIA has no flow control
constexpr uint32_t kSends = 64;
constexpr uint32_t kWindow = 32;  // messages before the receiver says that it has them
constexpr size_t kDescriptorBytes = 64;
constexpr size_t kDataAt = (kReceives + kSends) * kDescriptorBytes;
constexpr size_t kRegionBytes = kDataAt + 2 * kLargestMessage;
constexpr size_t kWord = sizeof(uint64_t);
constexpr VIP_ULONG kTimeout = 10'000;

// Room for an address of any provider.
union Address {
    VIP_NET_ADDRESS head;
    unsigned char room[128];
};

}  // namespace

void ViaLink::check(VIP_RETURN result, const char* call) {
    if (result == VIP_SUCCESS) return;
    char text[100];
    std::snprintf(text, sizeof text, "%s answers %d", call, static_cast<int>(result));
    pair_.fail(text);
}

ViaLink::ViaLink(Pair& pair, const std::string& device, Arrival arrival, uint32_t idle)
    : pair_(pair), arrival_(arrival) {
    open(device, idle);
    // The first one made is the first that a search of the completion queue would meet: the one in use is the
    // last.
    for (uint32_t i = 0; i < idle; ++i) idle_.push_back(connected_vi());
    vi_ = connected_vi();
    for (uint32_t i = 0; i < kReceives; ++i)
        post_receive(reinterpret_cast<VIP_DESCRIPTOR*>(base_ + i * kDescriptorBytes));
    pair_.meet();
}

ViaLink::~ViaLink() {
    const auto disconnect_all = [&] {
        VipDisconnect(vi_);
        for (VIP_VI_HANDLE vi : idle_) VipDisconnect(vi);
    };
    pair_.meet();
    if (pair_.leader()) disconnect_all();
    pair_.meet();
    if (!pair_.leader()) disconnect_all();
    VipDestroyVi(vi_);
    for (VIP_VI_HANDLE vi : idle_) VipDestroyVi(vi);
    if (cq_ != nullptr) VipDestroyCQ(cq_);
    VipxFreeMemory(nic_, base_, memory_);
    VipCloseNic(nic_);
}

void ViaLink::open(const std::string& device, uint32_t idle) {
    std::string name = device;
    check(VipOpenNic(name.data(), &nic_), "VipOpenNic");
    check(VipQueryNic(nic_, &attributes_), "VipQueryNic");
    largest_ = std::min<size_t>(attributes_.MaxTransferSize, kLargestMessage);

    VIP_MEM_ATTRIBUTES memory = {nullptr, VIP_TRUE, VIP_FALSE};
    VIP_PVOID shared = nullptr;
    check(VipxAllocMemory(nic_, kRegionBytes, 0, &memory, &shared, &memory_), "VipxAllocMemory");
    base_ = static_cast<std::byte*>(shared);
    outgoing_ = base_ + kDataAt;
    incoming_ = outgoing_ + kLargestMessage;
    if (arrival_ == Arrival::poll_cq) check(VipCreateCQ(nic_, kReceives + idle, &cq_), "VipCreateCQ");

    // Where the other side may write.
    auto* card = reinterpret_cast<std::byte*>(pair_.outgoing());
    const uint64_t own_incoming = reinterpret_cast<uintptr_t>(incoming_);
    std::memcpy(card, &own_incoming, 8);
    std::memcpy(card + 8, &memory_, sizeof memory_);
    std::memcpy(card + 16, attributes_.LocalNicAddress, attributes_.NicAddressLen);
    pair_.meet();
    std::memcpy(&remote_incoming_, pair_.incoming(), 8);
    std::memcpy(&remote_memory_, pair_.incoming() + 8, sizeof remote_memory_);
}

// The follower waits at its NIC's address, which the arena tells the leader.
VIP_VI_HANDLE ViaLink::connected_vi() {
    VIP_VI_HANDLE made = nullptr;
    VIP_VI_ATTRIBUTES vi = {
        VIP_SERVICE_RELIABLE_DELIVERY, attributes_.MaxTransferSize, nullptr, nullptr, VIP_TRUE, VIP_FALSE};
    check(VipCreateVi(nic_, &vi, nullptr, cq_, &made), "VipCreateVi");
    const auto id = static_cast<uint32_t>(pair_.fresh(1));
    const auto address = [&](const void* host) {
        Address a = {};
        a.head.HostAddressLen = attributes_.NicAddressLen;
        a.head.DiscriminatorLen = sizeof id;
        unsigned char* bytes = a.room + offsetof(VIP_NET_ADDRESS, HostAddress);
        std::memcpy(bytes, host, attributes_.NicAddressLen);
        std::memcpy(bytes + attributes_.NicAddressLen, &id, sizeof id);
        return a;
    };
    Address local = address(attributes_.LocalNicAddress), remote = address(pair_.incoming() + 16);
    VIP_VI_ATTRIBUTES theirs;
    if (pair_.leader()) {
        VIP_RETURN result = VIP_NO_MATCH;
        for (int tries = 0; tries < 100 && result == VIP_NO_MATCH; ++tries)
            result = VipConnectRequest(made, &local.head, &remote.head, kTimeout, &theirs);
        check(result, "VipConnectRequest");
    } else {
        VIP_CONN_HANDLE request = nullptr;
        check(VipConnectWait(nic_, &local.head, kTimeout, &remote.head, &theirs, &request),
              "VipConnectWait");
        check(VipConnectAccept(request, made), "VipConnectAccept");
    }
    return made;
}

void ViaLink::post_receive(VIP_DESCRIPTOR* d) {
    d->CS.Control = 0;
    d->CS.SegCount = 1;
    d->CS.Length = static_cast<VIP_UINT32>(largest_);
    d->CS.Status = 0;
    d->DS[0].Local.Data.Address = incoming_;
    d->DS[0].Local.Handle = memory_;
    d->DS[0].Local.Length = static_cast<VIP_UINT32>(largest_);
    check(VipPostRecv(vi_, d, memory_), "VipPostRecv");
}

void ViaLink::reap_send() {
    VIP_DESCRIPTOR* d = nullptr;
    VIP_RETURN result;
    while ((result = VipSendDone(vi_, &d)) == VIP_NOT_DONE) {
    }
    check(result, "VipSendDone");
    --unreaped_;
}

void ViaLink::post_send(VIP_DESCRIPTOR* d) {
    check(VipPostSend(vi_, d, memory_), "VipPostSend");
    ++unreaped_;
}

void ViaLink::send(size_t bytes) {
    if (unreaped_ == kSends) reap_send();
    auto* d =
        reinterpret_cast<VIP_DESCRIPTOR*>(base_ + (kReceives + next_send_++ % kSends) * kDescriptorBytes);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.SegCount = 1;
    d->CS.Length = static_cast<VIP_UINT32>(bytes);
    d->CS.Status = 0;
    d->DS[0].Local.Data.Address = outgoing_;
    d->DS[0].Local.Handle = memory_;
    d->DS[0].Local.Length = static_cast<VIP_UINT32>(bytes);
    post_send(d);
}

void ViaLink::rdma_write(size_t bytes) {
    if (unreaped_ == kSends) reap_send();
    auto* d =
        reinterpret_cast<VIP_DESCRIPTOR*>(base_ + (kReceives + next_send_++ % kSends) * kDescriptorBytes);
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d->CS.SegCount = 2;
    d->CS.Length = static_cast<VIP_UINT32>(bytes);
    d->CS.Status = 0;
    d->DS[0].Remote.Data.AddressBits = remote_incoming_;
    d->DS[0].Remote.Handle = remote_memory_;
    d->DS[1].Local.Data.Address = outgoing_;
    d->DS[1].Local.Handle = memory_;
    d->DS[1].Local.Length = static_cast<VIP_UINT32>(bytes);
    post_send(d);
}

VIP_DESCRIPTOR* ViaLink::receive() {
    VIP_DESCRIPTOR* d = nullptr;
    VIP_RETURN result = VIP_NOT_DONE;
    if (arrival_ == Arrival::wait) {
        result = VipRecvWait(vi_, kTimeout, &d);
    } else if (arrival_ == Arrival::poll_cq) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        while ((result = VipCQDone(cq_, &vi, &is_receive)) == VIP_NOT_DONE) {
        }
        check(result, "VipCQDone");
        result = VipRecvDone(vi, &d);
    } else {
        while ((result = VipRecvDone(vi_, &d)) == VIP_NOT_DONE) {
        }
    }
    check(result, "receiving");
    return d;
}

double ViaLink::ping_pong(size_t bytes, int64_t pause_ns) {
    auto* out = reinterpret_cast<uint64_t*>(outgoing_);
    const auto* in = reinterpret_cast<const uint64_t*>(incoming_);
    return pair_.ns_per_iteration([&](uint64_t iterations) {
        const uint64_t base = pair_.fresh(iterations);
        uint64_t wrong = 0;
        for (uint64_t i = base; i < base + iterations; ++i) {
            *out = i;
            if (pair_.leader()) {
                if (pause_ns != 0) spin_for(pause_ns);
                send(bytes);
            }
            VIP_DESCRIPTOR* d = receive();
            wrong += d->CS.Length != bytes || *in != i;
            post_receive(d);
            if (!pair_.leader()) {
                if (pause_ns != 0) spin_for(pause_ns);
                send(bytes);
            }
            reap_send();
        }
        if (wrong != 0) pair_.fail("a message arrived that was not sent");
    }) / 2 -
           static_cast<double>(pause_ns);
}

double ViaLink::rdma_ping_pong(size_t bytes) {
    auto* out = reinterpret_cast<uint64_t*>(outgoing_ + bytes - kWord);
    const auto& in = *reinterpret_cast<const std::atomic<uint64_t>*>(incoming_ + bytes - kWord);
    return pair_.ns_per_iteration([&](uint64_t iterations) {
        const uint64_t base = pair_.fresh(iterations);
        for (uint64_t i = base; i < base + iterations; ++i) {
            *out = i;
            if (pair_.leader()) rdma_write(bytes);
            await_word(in, i);
            if (!pair_.leader()) rdma_write(bytes);
            reap_send();
        }
    }) / 2;
}

double ViaLink::stream(size_t bytes) {
    // The receiver answers each window; the sender is at most two windows ahead, and so many receives are
    // posted.
    static_assert(2 * kWindow <= kReceives);
    return pair_.ns_per_iteration([&](uint64_t iterations) {
        uint64_t answered = 0;
        for (uint64_t i = 0; i < iterations; ++i) {
            if (!pair_.leader()) {
                post_receive(receive());
                if (i % kWindow == kWindow - 1) send(kWord);
                continue;
            }
            if (i % kWindow == 0 && i >= 2 * kWindow) {
                post_receive(receive());
                ++answered;
            }
            send(bytes);
        }
        if (pair_.leader()) {
            for (; answered < iterations / kWindow; ++answered) post_receive(receive());
            // What is behind the last whole window.
            post_receive(receive());
        } else {
            send(kWord);
        }
        while (unreaped_ != 0) reap_send();
    });
}

}  // namespace viaduct::bench
