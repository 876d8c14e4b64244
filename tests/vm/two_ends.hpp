// SPDX-License-Identifier: BSD-2-Clause
// What the programs of this folder share: two NICs in one process, each with a VI, one that waits for a
// connection and one that requests it. Any error ends the process with 1.
#pragma once

#include <vipl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace viaduct::vm {

inline constexpr char kDiscriminator[] = "vm.connects";

[[noreturn]] inline void give_up() {
    std::fflush(stdout);
    std::_Exit(1);
}

inline void must(VIP_RETURN status, const char* what) {
    if (status == VIP_SUCCESS) return;
    std::printf("%s: status %d\n", what, static_cast<int>(status));
    give_up();
}

inline void run(const std::string& command) {
    if (command.empty() || std::system(command.c_str()) == 0) return;
    std::printf("failed: %s\n", command.c_str());
    give_up();
}

struct Address {
    alignas(VIP_NET_ADDRESS) unsigned char bytes[256] = {};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
    void set_discriminator() {
        get()->DiscriminatorLen = sizeof kDiscriminator;
        std::memcpy(get()->HostAddress + get()->HostAddressLen, kDiscriminator, sizeof kDiscriminator);
    }
};

inline void ignore_errors(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}

// One end: a NIC with a VI. `told` is called with asynchronous errors, with `context`.
struct End {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    Address own;

    explicit End(const char* name, VIP_RELIABILITY_LEVEL level = VIP_SERVICE_UNRELIABLE,
                 VIP_ERROR_HANDLER told = ignore_errors, VIP_PVOID context = nullptr) {
        must(VipOpenNic(name, &nic), "VipOpenNic");
        must(VipErrorCallback(nic, context, told), "VipErrorCallback");
        must(VipNSInit(nic, nullptr), "VipNSInit");
        must(VipCreatePtag(nic, &ptag), "VipCreatePtag");
        VIP_NIC_ATTRIBUTES nic_attributes;
        must(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
        own.get()->HostAddressLen = nic_attributes.NicAddressLen;
        std::memcpy(own.get()->HostAddress, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
        own.set_discriminator();
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = level;
        attributes.MaxTransferSize = 4096;
        attributes.Ptag = ptag;
        must(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi), "VipCreateVi");
    }

    // Where `host` is, with the discriminator of all of these programs.
    Address find(const char* host) {
        Address remote;
        remote.get()->HostAddressLen = own.get()->HostAddressLen;
        must(VipNSGetHostByName(nic, const_cast<char*>(host), remote.get(), 0), "VipNSGetHostByName");
        remote.set_discriminator();
        return remote;
    }
};

// Asks until a program waits.
inline void ask(End& end, VIP_NET_ADDRESS* remote, VIP_ULONG limit_ms) {
    VIP_VI_ATTRIBUTES peer;
    VIP_RETURN status = VIP_NO_MATCH;
    while (status == VIP_NO_MATCH) status = VipConnectRequest(end.vi, end.own.get(), remote, limit_ms, &peer);
    must(status, "VipConnectRequest");
}

inline void answer(End& end, VIP_ULONG limit_ms) {
    Address requester;
    requester.get()->HostAddressLen = end.own.get()->HostAddressLen;
    requester.get()->DiscriminatorLen = sizeof kDiscriminator;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    must(VipConnectWait(end.nic, end.own.get(), limit_ms, requester.get(), &attributes, &connection),
         "VipConnectWait");
    must(VipConnectAccept(connection, end.vi), "VipConnectAccept");
}

}  // namespace viaduct::vm
