// SPDX-License-Identifier: BSD-2-Clause
// What tests of the user agent share that need a real agent and the default NIC, and reach behind the exported calls.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "vipl/library.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

// The build's own agent and providers: this program lies in no folder from which they could be found.
inline void use_this_build() {
    const std::string vipkad = VIADUCT_TEST_VIPKAD;
    const std::string root = vipkad.substr(0, vipkad.rfind("/", vipkad.rfind('/') - 1));
    ::setenv("VIADUCT_VIPKAD", vipkad.c_str(), 1);
    // An agent of this process alone: others connect by the same discriminators, and one test kills it.
    static const std::string agent = "@viaduct-unit-vipl-" + std::to_string(::getpid());
    ::setenv("VIADUCT_AGENT", agent.c_str(), 1);
    ::setenv("VIADUCT_PROVIDER_PATH", (root + "/lib/viaduct").c_str(), 0);
}

struct Errors {
    std::atomic<int> catastrophic{0};
    std::atomic<int> others{0};
    static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
        auto& self = *static_cast<Errors*>(context);
        const bool of_nic = error->ErrorCode == VIP_ERROR_CATASTROPHIC && error->ResourceCode == VIP_RESOURCE_NIC;
        ++(of_nic ? self.catastrophic : self.others);
    }
};

// One NIC handle with registered memory for descriptors.
class End {
public:
    End() {
        use_this_build();
        EXPECT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
        EXPECT_EQ(VipQueryNic(nic, &limits), VIP_SUCCESS);
        EXPECT_EQ(VipRegisterMem(nic, memory, sizeof memory, nullptr, &region), VIP_SUCCESS);
        vi = create_vi();
    }
    ~End() { VipCloseNic(nic); }

    VIP_VI_HANDLE create_vi(VIP_CQ_HANDLE of_receives = nullptr) const {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 4096;
        VIP_VI_HANDLE made = nullptr;
        EXPECT_EQ(VipCreateVi(nic, &attributes, nullptr, of_receives, &made), VIP_SUCCESS);
        return made;
    }

    // The one of that number; zero until it is posted: a message without data.
    VIP_DESCRIPTOR* descriptor(int number = 0) { return reinterpret_cast<VIP_DESCRIPTOR*>(memory + number * 64); }

    VIP_VI_STATE state() const {
        VIP_VI_STATE now;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty, recv_empty;
        EXPECT_EQ(VipQueryVi(vi, &now, &attributes, &send_empty, &recv_empty), VIP_SUCCESS);
        return now;
    }

    VIP_NIC_HANDLE nic = nullptr;
    VIP_NIC_ATTRIBUTES limits{};
    VIP_VI_HANDLE vi = nullptr;
    VIP_MEM_HANDLE region = 0;
    alignas(64) char memory[4096] = {};
};

// Joins two VIs peer to peer: no second thread is needed.
inline void connect(End& a, End& b) {
    struct {
        VIP_NET_ADDRESS address;
        char rest[16];
    } one{}, two{};
    const auto fill = [](auto& to, const End& end, char discriminator) {
        to.address.HostAddressLen = end.limits.NicAddressLen;
        to.address.DiscriminatorLen = 1;
        auto* bytes = reinterpret_cast<char*>(&to) + 4;
        std::memcpy(bytes, end.limits.LocalNicAddress, end.limits.NicAddressLen);
        bytes[end.limits.NicAddressLen] = discriminator;
    };
    fill(one, a, '1');
    fill(two, b, '2');
    ASSERT_EQ(VipConnectPeerRequest(a.vi, &one.address, &two.address, 10000), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerRequest(b.vi, &two.address, &one.address, 10000), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes;
    ASSERT_EQ(VipConnectPeerWait(a.vi, &attributes), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerWait(b.vi, &attributes), VIP_SUCCESS);
}

inline Nic& inside(VIP_NIC_HANDLE handle) { return *static_cast<Nic*>(handle_table.find(handle, HandleKind::nic)); }

}  // namespace viaduct::vipl
