// SPDX-License-Identifier: BSD-2-Clause
// Numbers of things that programs of the time never dreamt of, between two processes. (Within one process:
// the limits of the conformance suite.)
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

TEST(Scale, AThousandVisToAnotherProcessAllInUse) {
    const VIP_ULONG count = conformance::nic_attributes().MaxVI;
    ASSERT_GE(count, 1024u);
    EndOptions chosen;
    chosen.memory = count * 1024 + 65536;
    chosen.send_cq = count * 4;
    chosen.one_cq = true;
    End end(chosen);
    const std::string discriminator = conformance::unique_discriminator();
    Child other("echo-many", arguments_for(end, discriminator, {std::to_string(count)}));
    std::vector<VIP_VI_HANDLE> vis;
    const conformance::Stopwatch begun;
    for (std::size_t i = 0; i < count; ++i) {
        vis.push_back(i == 0 ? end.vi : end.create_vi());
        VIP_DESCRIPTOR* d = end.message(end.buffer(64), 64);
        ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vis[i], d, end.region));
        accept_on(end, vis[i], discriminator + std::to_string(i));
    }
    ASSERT_EQ("ready", other.line());
    RecordProperty("connecting_ms", static_cast<int>(conformance::since(begun).count()));
    EXPECT_TRUE(conformance::in_time(begun, Millis(30000)));

    std::vector<VIP_DESCRIPTOR*> sends;
    for (std::size_t i = 0; i < count; ++i) sends.push_back(end.message(end.buffer(64), 64));
    for (int round = 0; round < 5; ++round) {
        for (std::size_t i = 0; i < count; ++i) {
            sends[i]->CS.Status = 0;
            const std::uint32_t number = static_cast<std::uint32_t>(i * 8 + static_cast<unsigned>(round));
            std::memcpy(sends[i]->DS[0].Local.Data.Address, &number, sizeof number);
            ASSERT_EQ(VIP_SUCCESS, VipPostSend(vis[i], sends[i], end.region));
        }
        for (std::size_t entries = 0; entries < 2 * count; ++entries) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            ASSERT_EQ(VIP_SUCCESS, VipCQWait(end.send_cq, 10000, &vi, &receive))
                << entries << " in " << round;
            VIP_DESCRIPTOR* d = nullptr;
            ASSERT_EQ(VIP_SUCCESS, receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
            if (!receive) continue;
            std::uint32_t number = 0;
            std::memcpy(&number, d->DS[0].Local.Data.Address, sizeof number);
            ASSERT_EQ(static_cast<std::uint32_t>(round), number % 8);
            ASSERT_EQ(vi, vis.at(number / 8)) << "another VI's message";
            d->CS.Status = 0;
            ASSERT_EQ(VIP_SUCCESS, VipPostRecv(vi, d, end.region));
        }
    }
    const conformance::Stopwatch ending;
    for (std::size_t i = 1; i < count; ++i) ASSERT_EQ(VIP_SUCCESS, conformance::retire(vis[i]));
    EXPECT_TRUE(conformance::in_time(ending, Millis(10000)));
    EXPECT_EQ(0u, end.errors.size());
}

TEST(Scale, TenThousandRegionsWrittenByAnotherProcess) {
    constexpr std::uint32_t kCount = 10000;
    constexpr std::size_t kBytes = 512;
    EndOptions chosen;
    chosen.memory = kCount * kBytes + 65536 + 65000;
    End end(chosen);
    char* base = end.buffer(kCount * kBytes);
    const Window window{reinterpret_cast<std::uint64_t>(base), kBytes, 0, kCount};
    char* message = end.buffer(sizeof window + kCount * 4);
    std::memcpy(message, &window, sizeof window);
    VIP_MEM_ATTRIBUTES attributes{end.ptag, VIP_TRUE, VIP_FALSE};
    std::vector<VIP_MEM_HANDLE> handles(kCount);
    const auto begun = Clock::now();
    for (std::uint32_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(end.nic, base + i * kBytes, kBytes, &attributes, &handles[i]));
    }
    RecordProperty("registering_ms", static_cast<int>(conformance::since(begun).count()));
    std::memcpy(message + sizeof window, handles.data(), kCount * 4);

    const std::string discriminator = conformance::unique_discriminator();
    Child other("write-regions", conformance::client_arguments(end, discriminator));
    conformance::accept_from(end, discriminator);
    ASSERT_EQ("ready", other.line());
    end.send(message, sizeof window + kCount * 4);
    ASSERT_EQ(VIP_SUCCESS, conformance::reap_send(end.vi).code);
    ASSERT_EQ("written", other.line());
    for (std::uint32_t i = 0; i < kCount; ++i) {
        std::uint32_t number = 0;
        std::memcpy(&number, base + (i + 1) * kBytes - 4, sizeof number);
        ASSERT_EQ(i + 1, number);
        ASSERT_EQ(0, base[i * kBytes]);
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(VIP_SUCCESS, VipDeregisterMem(end.nic, base + i * kBytes, handles[i]));
    }
    EXPECT_EQ(0u, end.errors.size());
}

TEST(Scale, AGibibyteRegisteredAndMovedInPart) {
    constexpr std::size_t kBytes = std::size_t{1} << 30, kPiece = 1 << 20;
    constexpr std::uint32_t kCount = 33;
    End end;
    void* mapped =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(MAP_FAILED, mapped);
    char* base = static_cast<char*>(mapped);
    VIP_MEM_ATTRIBUTES attributes{end.ptag, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE handle = 0;
    ASSERT_EQ(VIP_SUCCESS, VipRegisterMem(end.nic, base, kBytes, &attributes, &handle));

    const std::string discriminator = conformance::unique_discriminator();
    Child other("write-pieces", conformance::client_arguments(end, discriminator));
    conformance::accept_from(end, discriminator);
    ASSERT_EQ("ready", other.line());
    const Window window{reinterpret_cast<std::uint64_t>(base), kBytes, handle, kCount};
    char* message = end.buffer(sizeof window);
    std::memcpy(message, &window, sizeof window);
    end.send(message, sizeof window);
    ASSERT_EQ(VIP_SUCCESS, conformance::reap_send(end.vi).code);
    ASSERT_EQ("written", other.line());
    for (std::uint32_t i = 0; i < kCount; ++i) {
        const char* piece = base + (kBytes - kPiece) / (kCount - 1) * i;
        EXPECT_EQ(std::string(kPiece, static_cast<char>('A' + i % 26)), std::string(piece, kPiece))
            << "piece " << i;
    }
    EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(end.nic, base, handle));
    munmap(mapped, kBytes);
}

}  // namespace
}  // namespace viaduct::integration
