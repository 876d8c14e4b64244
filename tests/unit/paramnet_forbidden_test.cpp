// SPDX-License-Identifier: BSD-2-Clause
// The system forbids copies between processes while a connection is up, as a seccomp filter or a change of
// user does: what was to be copied is moved with the peer's help, the operation under way included.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <initializer_list>
#include <thread>
#include <vector>

#include "paramnet_fixture.hpp"

namespace viaduct::paramnet::test {
namespace {

// For the calling thread, for good.
bool forbid_calls(int answer, std::initializer_list<long> calls) {
    std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    for (const long call : calls) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(call), 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<__u32>(answer)));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class Forbidden : public testing::TestWithParam<int> {
protected:
    template <class Body>
    void under_filter(std::initializer_list<long> calls, Body body) {
        std::thread([&] {
            if (!forbid_calls(GetParam(), calls)) GTEST_SKIP() << "no seccomp filters here";
            body();
        }).join();
    }
};

INSTANTIATE_TEST_SUITE_P(Paramnet, Forbidden, testing::Values(EPERM, ENOSYS));

TEST_P(Forbidden, WritesGoOnWithThePeersHelp) {
    constexpr uint32_t kBytes = 100'000;
    TestPair pair(kLevel, Reach::cross_copy);
    under_filter({SYS_process_vm_writev}, [&] {
        for (uint32_t seed = 1; seed < 4; ++seed) {
            fill(pair.a.data(), kBytes, seed);
            pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), kBytes, pair.b.data(),
                                              pair.b.region));
            const auto* d = pair.a.wait_send();
            ASSERT_NE(d, nullptr);
            EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
            // A read that follows sees it.
            std::byte* back = pair.a.data() + kBytes;
            pair.a.post_send(
                pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, back, kBytes, pair.b.data(), pair.b.region));
            d = pair.a.wait_send();
            ASSERT_NE(d, nullptr);
            EXPECT_TRUE(filled(back, kBytes, seed));
            EXPECT_TRUE(filled(pair.b.data(), kBytes, seed));
        }
    });
    EXPECT_EQ(pair.a.state(), static_cast<uint32_t>(VIP_STATE_CONNECTED));
    EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
}

TEST_P(Forbidden, ReadsGoOnWithThePeersHelp) {
    constexpr uint32_t kBytes = 100'000;
    TestPair pair(kLevel, Reach::cross_copy);
    fill(pair.b.data(), kBytes, 5);
    under_filter({SYS_process_vm_readv}, [&] {
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), kBytes, pair.b.data(), pair.b.region));
        const auto* d = pair.a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
        EXPECT_TRUE(filled(pair.a.data(), kBytes, 5));
    });
    EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
}

// Of several pieces, and others behind it.
TEST_P(Forbidden, MessagesThatWereToBeFetchedAreHandedOver) {
    constexpr uint32_t kBytes = 200'000, kMessages = 4;
    for (const uint16_t level : kLevels) {
        TestPair pair(level, Reach::cross_copy, 1 << 20, {{"pull_from", "16384"}});
        for (uint32_t i = 0; i < kMessages; ++i) {
            fill(pair.a.data() + i * kBytes, kBytes, i);
            pair.b.receive(pair.b.data() + i * kBytes, kBytes);
        }
        under_filter({SYS_process_vm_readv}, [&] {
            for (uint32_t i = 0; i < kMessages; ++i) pair.a.send(pair.a.data() + i * kBytes, kBytes);
            for (uint32_t i = 0; i < kMessages; ++i) {
                const auto* d = pair.b.wait_recv();
                ASSERT_NE(d, nullptr);
                EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
                EXPECT_EQ(d->CS.Length, kBytes);
                EXPECT_TRUE(filled(pair.b.data() + i * kBytes, kBytes, i)) << i;
            }
            for (uint32_t i = 0; i < kMessages; ++i) {
                const auto* d = pair.a.wait_send();
                ASSERT_NE(d, nullptr);
                EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
            }
        });
        EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
    }
}

// The receiver leaves, or loses its peer, in the middle of a message.
TEST_P(Forbidden, AMessageThatIsBeingHandedOverEndsWithItsConnection) {
    TestPair pair(kLevel, Reach::cross_copy, 1 << 20, {{"pull_from", "16384"}});
    pair.b.receive(pair.b.data(), 1 << 19);
    under_filter({SYS_process_vm_readv}, [&] {
        const TakesNothing held(pair.a);  // its progress thread answers nothing
        pair.a.core.send.lock.lock();
        pair.a.core.send.push(pair.a.make(false, pair.a.data(), 1 << 19));
        ops().kick_send(pair.a.core);
        pair.a.core.send.lock.unlock();
        for (int i = 0; i < 1000; ++i) pair.b.recv_done();
        pair.b.disconnect();
    });
    EXPECT_EQ(pair.b.state(), static_cast<uint32_t>(VIP_STATE_IDLE));
    EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
}

}  // namespace
}  // namespace viaduct::paramnet::test
