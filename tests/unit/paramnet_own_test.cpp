// SPDX-License-Identifier: BSD-2-Clause
// Memory that the kernel copies only for its owner (memfd_secret): RDMA to it and long messages from it are
// moved with the owner's help. Memory that its owner may not write to is refused, and the owner lives on.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "paramnet_fixture.hpp"

namespace viaduct::paramnet::test {
namespace {

constexpr uint32_t kSecretBytes = 100'000;

class Secret {
public:
    Secret() {
#ifdef SYS_memfd_secret
        const int file = static_cast<int>(::syscall(SYS_memfd_secret, 0));
        if (file < 0) return;
        if (::ftruncate(file, kSecretBytes) == 0) {
            void* at = ::mmap(nullptr, kSecretBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (at != MAP_FAILED) start_ = static_cast<std::byte*>(at);
        }
        ::close(file);
#endif
    }
    ~Secret() {
        if (start_ != nullptr) ::munmap(start_, kSecretBytes);
    }
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    std::byte* start() const { return start_; }

private:
    std::byte* start_ = nullptr;
};

class OwnersMemory : public testing::TestWithParam<uint16_t> {
protected:
    void SetUp() override {
        if (secret.start() == nullptr) GTEST_SKIP() << "no memfd_secret here";
    }
    const VIP_DESCRIPTOR* move(TestPair& pair, uint32_t control, const void* remote, uint32_t handle) {
        pair.a.post_send(pair.a.make_rdma(control, pair.a.data(), kSecretBytes, remote, handle));
        return pair.a.wait_send();
    }
    Secret secret;
};

INSTANTIATE_TEST_SUITE_P(Paramnet, OwnersMemory,
                         testing::Values(VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION));

TEST_P(OwnersMemory, WritesAndReadsReachIt) {
    TestPair pair(GetParam(), Reach::cross_copy);
    const uint32_t handle = pair.nic_b.add_region(secret.start(), kSecretBytes);
    for (uint32_t seed = 1; seed < 4; ++seed) {
        fill(pair.a.data(), kSecretBytes, seed);
        const auto* d = move(pair, VIP_CONTROL_OP_RDMAWRITE, secret.start(), handle);
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
        fill(pair.a.data(), kSecretBytes, 0);
        d = move(pair, VIP_CONTROL_OP_RDMAREAD, secret.start(), handle);
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
        EXPECT_TRUE(filled(pair.a.data(), kSecretBytes, seed));
        EXPECT_TRUE(filled(secret.start(), kSecretBytes, seed));
    }
    EXPECT_EQ(pair.a.state(), static_cast<uint32_t>(VIP_STATE_CONNECTED));
    EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
}

// What is written to other memory afterwards does not overtake it.
TEST_P(OwnersMemory, TheOrderOfWritesIsKept) {
    TestPair pair(GetParam(), Reach::cross_copy);
    const uint32_t handle = pair.nic_b.add_region(secret.start(), kSecretBytes);
    for (uint32_t seed = 1; seed < 50; ++seed) {
        fill(pair.a.data(), kSecretBytes, seed);
        std::byte* flag = pair.a.data() + kSecretBytes + 64;
        *flag = static_cast<std::byte>(seed);
        auto* seen = reinterpret_cast<const volatile std::byte*>(pair.b.data());
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), kSecretBytes, secret.start(), handle));
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, flag, 1, pair.b.data(), pair.b.region));
        ASSERT_NE(pair.a.wait_send(), nullptr);
        ASSERT_NE(pair.a.wait_send(), nullptr);
        ASSERT_TRUE(eventually([&] { return *seen == static_cast<std::byte>(seed); }));
        ASSERT_TRUE(filled(secret.start(), kSecretBytes, seed)) << seed;
    }
}

TEST_P(OwnersMemory, LongMessagesFromItArrive) {
    TestPair pair(GetParam(), Reach::cross_copy, 1 << 20, {{"pull_from", "16384"}});
    fill(secret.start(), kSecretBytes, 9);
    pair.b.receive(pair.b.data(), kSecretBytes);
    auto* d = pair.a.make(false, secret.start(), kSecretBytes);
    d->DS[0].Local.Handle = pair.nic_a.add_region(secret.start(), kSecretBytes);
    pair.a.post_send(d);
    const auto* got = pair.b.wait_recv();
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(status_of(got) & VIP_STATUS_ERROR_MASK, 0u);
    EXPECT_TRUE(filled(pair.b.data(), kSecretBytes, 9));
    ASSERT_NE(pair.a.wait_send(), nullptr);
    EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
}

// A store of ours to such memory would end the process.
TEST(OwnersReadOnlyMemory, IsRefused) {
    TestPair pair(VIP_SERVICE_RELIABLE_RECEPTION, Reach::cross_copy);
    void* fixed = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint32_t handle = pair.nic_b.add_region(fixed, 4096);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 4096, fixed, handle));
    const auto* d = pair.a.wait_send();
    ASSERT_NE(d, nullptr);
    EXPECT_NE(status_of(d) & VIP_STATUS_RDMA_PROT_ERROR, 0u);
    ::munmap(fixed, 4096);
}

}  // namespace
}  // namespace viaduct::paramnet::test
