// SPDX-License-Identifier: BSD-2-Clause
// Two VIs of this process, connected, with memory: what a row starts from. Steps that must succeed throw.
#pragma once

#include <viaduct/ext.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mistakes {

inline constexpr VIP_ULONG kBytes = 4096;      // of each buffer
inline constexpr VIP_ULONG kDescriptorAt = 0;  // in a Memory: room for descriptors, then data
inline constexpr VIP_ULONG kDataAt = 2048;
inline constexpr VIP_ULONG kSoon = 5000;  // milliseconds, on a machine with nothing else to do

// The last error of that handle; of any, for NULL.
std::string last(VIP_PVOID handle);

void must(VIP_RETURN answer, const char* step);
VIP_NIC_HANDLE open();
// The one NIC that most rows use.
VIP_NIC_HANDLE nic();

struct Address {
    alignas(8) unsigned char bytes[128] = {};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
};
Address address_of(VIP_NIC_HANDLE, const std::string& discriminator);

VIP_VI_ATTRIBUTES attributes(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_RECEPTION);
VIP_VI_HANDLE vi_of(VIP_NIC_HANDLE, VIP_VI_ATTRIBUTES);

// Registered pages.
struct Memory {
    explicit Memory(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE tag = nullptr, bool write = false, bool read = false);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    VIP_DESCRIPTOR* descriptor(unsigned number = 0) const;
    unsigned char* data() const { return bytes + kDataAt; }

    VIP_NIC_HANDLE nic;
    unsigned char* bytes;
    VIP_MEM_HANDLE handle = 0;
};

// A descriptor of one data segment.
VIP_DESCRIPTOR* fill(VIP_DESCRIPTOR*, void* data, VIP_MEM_HANDLE, VIP_UINT32 length,
                     VIP_UINT16 control = VIP_CONTROL_OP_SENDRECV);
// With an address segment in front.
VIP_DESCRIPTOR* fill_rdma(VIP_DESCRIPTOR*, const void* target, VIP_MEM_HANDLE target_handle, void* data, VIP_MEM_HANDLE,
                          VIP_UINT32 length, VIP_UINT16 control = VIP_CONTROL_OP_RDMAWRITE);

// What the VI says once it is in Error.
std::string of_broken(VIP_VI_HANDLE);

struct Pair {
    explicit Pair(VIP_VI_ATTRIBUTES first = attributes(), VIP_VI_ATTRIBUTES second = attributes());
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    ~Pair();

    // Posts; the sender's descriptor is complete when it returns, or time is over.
    void receive(VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) const { must(VipPostRecv(b, d, memory), "VipPostRecv"); }
    VIP_UINT32 send(VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) const;
    // What each end says once its connection is broken.
    std::string of_sender() const;
    std::string of_receiver() const;
    // Both, one behind the other.
    std::string of_both() const { return of_sender() + " || " + of_receiver(); }

    VIP_VI_HANDLE a = nullptr;  // sends
    VIP_VI_HANDLE b = nullptr;
    Memory mine, theirs;  // of a, of b
};

}  // namespace mistakes
