// SPDX-License-Identifier: BSD-2-Clause
#include "ends.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "../eventually.hpp"

namespace mistakes {

std::string last(VIP_PVOID handle) {
    char text[1024];
    return VipxLastError(handle, text, sizeof text) == VIP_SUCCESS ? text : "";
}

void must(VIP_RETURN answer, const char* step) {
    if (answer != VIP_SUCCESS) throw std::runtime_error(std::string(step) + ": " + last(nullptr));
}

VIP_NIC_HANDLE open() {
    VIP_NIC_HANDLE handle;
    must(VipOpenNic("nic0", &handle), "VipOpenNic");
    return handle;
}

VIP_NIC_HANDLE nic() {
    static const VIP_NIC_HANDLE handle = open();
    return handle;
}

Address address_of(VIP_NIC_HANDLE of, const std::string& discriminator) {
    VIP_NIC_ATTRIBUTES info;
    must(VipQueryNic(of, &info), "VipQueryNic");
    Address address;
    address.get()->HostAddressLen = info.NicAddressLen;
    address.get()->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    unsigned char* at = address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress);
    std::memcpy(at, info.LocalNicAddress, info.NicAddressLen);
    std::copy(discriminator.begin(), discriminator.end(), at + info.NicAddressLen);
    return address;
}

VIP_VI_ATTRIBUTES attributes(VIP_RELIABILITY_LEVEL level) {
    VIP_VI_ATTRIBUTES a{};
    a.ReliabilityLevel = level;
    a.MaxTransferSize = 65536;
    return a;
}

VIP_VI_HANDLE vi_of(VIP_NIC_HANDLE of, VIP_VI_ATTRIBUTES a) {
    VIP_VI_HANDLE vi;
    must(VipCreateVi(of, &a, nullptr, nullptr, &vi), "VipCreateVi");
    return vi;
}

Memory::Memory(VIP_NIC_HANDLE of, VIP_PROTECTION_HANDLE tag, bool write, bool read)
    : nic(of), bytes(static_cast<unsigned char*>(std::aligned_alloc(kBytes, kBytes))) {
    std::memset(bytes, 0, kBytes);
    VIP_MEM_ATTRIBUTES a{};
    a.Ptag = tag;
    a.EnableRdmaWrite = write ? VIP_TRUE : VIP_FALSE;
    a.EnableRdmaRead = read ? VIP_TRUE : VIP_FALSE;
    must(VipRegisterMem(nic, bytes, kBytes, &a, &handle), "VipRegisterMem");
}

Memory::~Memory() {
    VipDeregisterMem(nic, bytes, handle);
    std::free(bytes);
}

VIP_DESCRIPTOR* Memory::descriptor(unsigned number) const {
    return reinterpret_cast<VIP_DESCRIPTOR*>(bytes + kDescriptorAt + number * sizeof(VIP_DESCRIPTOR));
}

VIP_DESCRIPTOR* fill(VIP_DESCRIPTOR* d, void* data, VIP_MEM_HANDLE handle, VIP_UINT32 length, VIP_UINT16 control) {
    std::memset(d, 0, sizeof *d);
    d->CS.Control = control;
    d->CS.SegCount = 1;
    d->CS.Length = length;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = handle;
    d->DS[0].Local.Length = length;
    return d;
}

VIP_DESCRIPTOR* fill_rdma(VIP_DESCRIPTOR* d, const void* target, VIP_MEM_HANDLE target_handle, void* data,
                          VIP_MEM_HANDLE handle, VIP_UINT32 length, VIP_UINT16 control) {
    fill(d, data, handle, length, control);
    d->CS.SegCount = 2;
    d->DS[1].Local = d->DS[0].Local;
    d->DS[0].Remote.Data.AddressBits = reinterpret_cast<uintptr_t>(target);
    d->DS[0].Remote.Handle = target_handle;
    d->DS[0].Remote.Reserved = 0;
    return d;
}

Pair::Pair(VIP_VI_ATTRIBUTES first, VIP_VI_ATTRIBUTES second) : mine(nic()), theirs(nic()) {
    static int number = 0;
    const std::string name = "mistakes" + std::to_string(::getpid()) + "." + std::to_string(++number);
    a = vi_of(nic(), first);
    b = vi_of(nic(), second);
    Address there = address_of(nic(), name);
    Address here = address_of(nic(), "");
    std::atomic<VIP_RETURN> accepted = VIP_TIMEOUT;
    std::atomic<bool> over = false;
    std::thread other([&] {
        Address from;
        VIP_VI_ATTRIBUTES wanted;
        VIP_CONN_HANDLE request;
        while (accepted == VIP_TIMEOUT && !over)
            accepted = VipConnectWait(nic(), there.get(), kSoon, from.get(), &wanted, &request);
        if (accepted == VIP_SUCCESS) accepted = VipConnectAccept(request, b);
    });
    VIP_VI_ATTRIBUTES got;
    VIP_RETURN requested = VIP_NO_MATCH;
    while (requested == VIP_NO_MATCH && (accepted == VIP_TIMEOUT || accepted == VIP_SUCCESS))
        requested = VipConnectRequest(a, here.get(), there.get(), VIP_INFINITE, &got);
    over = true;
    other.join();
    if (accepted != VIP_TIMEOUT) must(accepted, "VipConnectWait or VipConnectAccept");
    must(requested, "VipConnectRequest");
}

Pair::~Pair() {
    for (const VIP_VI_HANDLE vi : {a, b}) {
        VipDisconnect(vi);
        VipDestroyVi(vi);
    }
}

VIP_UINT32 Pair::send(VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) const {
    must(VipPostSend(a, d, memory), "VipPostSend");
    VIP_DESCRIPTOR* done = nullptr;
    const auto is_done = [&] {
        VIP_DESCRIPTOR* arrived;
        VipRecvDone(b, &arrived);
        VipSendDone(a, &done);
        return done != nullptr;
    };
    viaduct::tests::eventually("the send completes", is_done);
    return done != nullptr ? done->CS.Status : 0;
}

// Polled, as a program would find out.
std::string of_broken(VIP_VI_HANDLE vi) {
    const auto is_broken = [&] {
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES unused;
        VIP_BOOLEAN empty[2];
        must(VipQueryVi(vi, &state, &unused, &empty[0], &empty[1]), "VipQueryVi");
        return state == VIP_STATE_ERROR;
    };
    const bool broken = viaduct::tests::eventually("the VI breaks", is_broken).holds;
    return (broken ? "" : "not broken: ") + last(vi);
}

std::string Pair::of_sender() const { return of_broken(a); }
std::string Pair::of_receiver() const { return of_broken(b); }

}  // namespace mistakes
