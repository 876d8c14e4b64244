// SPDX-License-Identifier: BSD-2-Clause
// What a NIC says it can hold, it holds, and one more is refused with VIP_ERROR_RESOURCE: spec/limits 9.
#include <sys/mman.h>

#include <cstring>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

// Limits above this are not tested: reaching them would test the host, not the NIC.
constexpr VIP_ULONG kReachable = 70000;

TEST(Limits, AllVisCanBeCreatedConnectedAndUsedAtOnce) {
    End client;
    End server(across());
    const VIP_ULONG wanted = std::min<VIP_ULONG>(client.limits.MaxVI, 1024);
    std::vector<VIP_VI_HANDLE> here = {client.vi};
    std::vector<VIP_VI_HANDLE> there = {server.vi};
    while (here.size() < wanted) {
        here.push_back(client.create_vi());
        there.push_back(server.create_vi());
    }
    const std::string name = unique_discriminator();
    auto accepted = in_background([&] {
        for (const VIP_VI_HANDLE vi : there) {
            Address local(server.nic, name);
            Address from = Address::blank();
            VIP_VI_ATTRIBUTES attributes{};
            VIP_CONN_HANDLE connection = nullptr;
            require(VipConnectWait(server.nic, local.get(), kLongWait, from.get(), &attributes, &connection),
                    "VipConnectWait");
            require(VipConnectAccept(connection, vi), "VipConnectAccept");
        }
        return VIP_SUCCESS;
    });
    Address local(client.nic, name);
    Address remote(server.nic, name);
    for (const VIP_VI_HANDLE vi : here) {
        VIP_VI_ATTRIBUTES attributes{};
        ASSERT_EQ(request(vi, local.get(), remote.get(), kLongWait, &attributes), VIP_SUCCESS);
    }
    ASSERT_EQ(accepted.get(), VIP_SUCCESS);

    char* in = server.buffer(8 * there.size());  // each a place of its own: two threads may be at two VIs
    char* out = client.buffer(8);
    for (std::size_t i = 0; i < here.size(); ++i) {
        require(VipPostRecv(there[i], server.message(in + 8 * i, 8), server.region), "VipPostRecv");
        require(VipPostSend(here[i], client.message(out, 8), client.region), "VipPostSend");
    }
    for (std::size_t i = 0; i < here.size(); ++i) {
        ASSERT_EQ(reap_recv(there[i]).code, VIP_SUCCESS) << "VI " << i;
        ASSERT_EQ(reap_send(here[i]).code, VIP_SUCCESS) << "VI " << i;
    }
    if (wanted == client.limits.MaxVI) {
        VIP_VI_ATTRIBUTES attributes = client.vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        CONFORM(VIP_ERROR_RESOURCE, kNone, VipCreateVi(client.nic, &attributes, nullptr, nullptr, &vi));
        require(retire(here.back()), "VipDestroyVi");
        here.pop_back();
        CONFORM(VIP_SUCCESS, kNone, VipCreateVi(client.nic, &attributes, nullptr, nullptr, &vi));
    } else {
        cannot_show("VipCreateVi", VIP_ERROR_RESOURCE, VS::kNone, "MaxVI is larger than a test should fill");
    }
    EXPECT_EQ(server.errors.count(VIP_ERROR_RECVQ_EMPTY), 0u);
}

TEST(Limits, AllProtectionTagsCanBeCreated) {
    End end;
    if (end.limits.MaxPtags > kReachable) {
        cannot_show("VipCreatePtag", VIP_ERROR_RESOURCE, VS::kNone, "MaxPtags is larger than a test should fill");
        GTEST_SKIP() << "MaxPtags is larger than a test should fill";
    }
    VIP_PROTECTION_HANDLE last = nullptr;
    for (VIP_ULONG i = 1; i < end.limits.MaxPtags; ++i) {  // the end itself has one
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreatePtag(end.nic, &last)));
    }
    VIP_PROTECTION_HANDLE one_more = nullptr;
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipCreatePtag(end.nic, &one_more));
    require(VipDestroyPtag(end.nic, last), "VipDestroyPtag");
    CONFORM(VIP_SUCCESS, kNone, VipCreatePtag(end.nic, &one_more));
}

TEST(Limits, AllCompletionQueuesCanBeCreated) {
    End end;
    if (end.limits.MaxCQ > kReachable) {
        GTEST_SKIP() << "MaxCQ is larger than a test should fill";
    }
    VIP_CQ_HANDLE last = nullptr;
    for (VIP_ULONG i = 0; i < end.limits.MaxCQ; ++i) {
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreateCQ(end.nic, 1, &last)));
    }
    VIP_CQ_HANDLE one_more = nullptr;
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipCreateCQ(end.nic, 1, &one_more));
    require(VipDestroyCQ(last), "VipDestroyCQ");
    CONFORM(VIP_SUCCESS, kNone, VipCreateCQ(end.nic, 1, &one_more));
}

TEST(Limits, TenThousandRegionsAreAllUsable) {
    Pair pair;
    constexpr std::size_t kRegions = 10000;
    constexpr std::size_t kBytes = 64;
    std::vector<char> memory(kRegions * kBytes);
    std::vector<VIP_MEM_HANDLE> handles(kRegions);
    for (std::size_t i = 0; i < kRegions; ++i) {
        ASSERT_EQ(VipRegisterMem(pair.client.nic, &memory[i * kBytes], kBytes, nullptr, &handles[i]), VIP_SUCCESS)
            << "region " << i;
    }
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    char* in = pair.server.buffer(kBytes);
    for (std::size_t i = 0; i < kRegions; i += 97) {
        memory[i * kBytes] = static_cast<char>(i);
        fill(receive, 0, {pair.server.piece(in, kBytes)});
        fill(send, 0, {{&memory[i * kBytes], handles[i], kBytes}});
        require(pair.server.post_recv(receive), "VipPostRecv");
        require(pair.client.post_send(send), "VipPostSend");
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        ASSERT_EQ(in[0], static_cast<char>(i));
    }
    for (std::size_t i = 0; i < kRegions; ++i) {
        ASSERT_EQ(VipDeregisterMem(pair.client.nic, &memory[i * kBytes], handles[i]), VIP_SUCCESS);
    }
}

TEST(Limits, OneRegionMoreThanTheNicHoldsIsRefused) {
    End end;
    if (end.limits.MaxRegisterRegions > kReachable) {
        cannot_show("VipRegisterMem", VIP_ERROR_RESOURCE, VS::kNone,
                    "MaxRegisterRegions is larger than a test should fill");
        GTEST_SKIP() << "MaxRegisterRegions is larger than a test should fill";
    }
    VIP_MEM_HANDLE handle = 0;
    for (VIP_ULONG i = 1; i < end.limits.MaxRegisterRegions; ++i) {  // the end itself has one
        ASSERT_EQ(VipRegisterMem(end.nic, end.memory, 64, nullptr, &handle), VIP_SUCCESS) << "region " << i;
    }
    VIP_MEM_HANDLE one_more = 0;
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipRegisterMem(end.nic, end.memory, 64, nullptr, &one_more));
    require(VipDeregisterMem(end.nic, end.memory, handle), "VipDeregisterMem");
    CONFORM(VIP_SUCCESS, kNone, VipRegisterMem(end.nic, end.memory, 64, nullptr, &one_more));
}

TEST(Limits, OneGibibyteCanBeRegisteredAndUsedAtBothItsEnds) {
    Pair pair;
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    if (pair.client.limits.MaxRegisterBlockBytes < kBytes) {
        GTEST_SKIP() << "the NIC registers less than 1 GiB in one block";
    }
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    auto* memory = static_cast<char*>(mapped);
    VIP_MEM_HANDLE handle = 0;
    const VIP_RETURN result = VipRegisterMem(pair.client.nic, memory, kBytes, nullptr, &handle);
    EXPECT_EQ(result, VIP_SUCCESS) << code_name(result);
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    for (const std::size_t at : {std::size_t{0}, kBytes / 2, kBytes - 64}) {
        memory[at + 63] = 'G';
        VIP_DESCRIPTOR* receive = pair.server.receive(64);
        fill(send, 0, {{memory + at, handle, 64}});
        require(pair.client.post_send(send), "VipPostSend");
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        EXPECT_EQ(static_cast<char*>(receive->DS[0].Local.Data.Address)[63], 'G');
    }
    EXPECT_EQ(VipDeregisterMem(pair.client.nic, memory, handle), VIP_SUCCESS);
    munmap(mapped, kBytes);
}

TEST(Limits, TheLargestDiscriminatorConnects) {
    End client;
    End server(across());
    const std::string name(client.limits.MaxDiscriminatorLen, 'L');
    auto accepted = in_background([&] {
        Address local(server.nic, name);
        Address from = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN waited =
            VipConnectWait(server.nic, local.get(), kLongWait, from.get(), &attributes, &connection);
        EXPECT_EQ(from.discriminator(), name);
        return waited == VIP_SUCCESS ? VipConnectAccept(connection, server.vi) : waited;
    });
    Address local(client.nic, name);
    Address remote(server.nic, name);
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(request(client.vi, local.get(), remote.get(), kLongWait, &attributes), VIP_SUCCESS);
    EXPECT_EQ(accepted.get(), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::conformance
