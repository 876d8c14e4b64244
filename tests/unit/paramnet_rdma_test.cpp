// SPDX-License-Identifier: BSD-2-Clause
// RDMA by all three ways to the target's memory: the same process, a copy between processes, and served by
// the target. The target calls nothing.
#include <unistd.h>

#include "paramnet_rdma_testing.hpp"
#include "providers/paramnet/cross_copy.hpp"
#include "tests/eventually.hpp"

namespace viaduct::paramnet::test {
namespace {

class Rdma : public EachLevelAndReach {};

TEST_P(Rdma, WritesArriveWithoutACallOfTheTarget) {
    TestPair pair(level(), reach(), 5u << 20);
    uint32_t seed = 0;
    for (const uint32_t size : {1u, 4u, 8u, 63u, 64u, 65u, 4000u, 8192u, 100000u, 1u << 20, 4u << 20}) {
        SCOPED_TRACE(size);
        fill(pair.a.data(), size, ++seed);
        std::byte* target = pair.b.data() + 5;
        target[size] = std::byte{0xEE};
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), size, target, pair.b.region));
        VIP_DESCRIPTOR* d = pair.a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE});
        EXPECT_EQ(d->CS.Length, size);
        EXPECT_TRUE(eventually([&] { return filled(target, size, seed); }));
        EXPECT_EQ(target[size], std::byte{0xEE});
    }
}

TEST_P(Rdma, WriteWithImmediateTakesAReceiveAndLeavesItsSegmentsAlone) {
    TestPair pair(level(), reach());
    std::memset(pair.b.data(), 0x11, 100);
    pair.b.receive(pair.b.data(), 100);
    fill(pair.a.data(), 3000, 4);
    VIP_DESCRIPTOR* d = pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, pair.a.data(), 3000,
                                         pair.b.data() + 1000, pair.b.region);
    d->CS.ImmediateData = 0xDEADBEEF;
    pair.a.post_send(d);
    VIP_DESCRIPTOR* got = pair.b.wait_recv();
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(status_of(got), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE});
    EXPECT_EQ(got->CS.Length, 3000u);
    EXPECT_EQ(got->CS.ImmediateData, 0xDEADBEEFu);
    EXPECT_TRUE(filled(pair.b.data() + 1000, 3000, 4)) << "in place when the receive completes";
    for (int i = 0; i < 100; ++i) ASSERT_EQ(pair.b.data()[i], std::byte{0x11});
    ASSERT_NE(pair.a.wait_send(), nullptr);
}

// A descriptor may lie in memory that the peer may write to. What has completed is told as it was.
TEST_P(Rdma, ACompletionIsToldAsItWasWhateverIsWrittenOverItsDescriptor) {
    TestPair pair(level(), reach());
    pair.b.receive(pair.b.data(), 8);
    pair.a.send(pair.a.data(), 8);
    WorkQueue& queue = pair.b.core.recv;
    ASSERT_TRUE(eventually([&] {
        pair.b.nic.poll();
        return queue.head_complete();
    }));
    VIP_DESCRIPTOR* received = pair.b.descriptor(true, 0);
    const VIP_UINT32 forged = VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR;
    std::memcpy(pair.a.data() + 64, &forged, sizeof forged);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data() + 64, sizeof forged, &received->CS.Status,
                                      pair.b.region));
    ASSERT_TRUE(eventually([&] { return status_of(received) == forged; }));
    bool in_error = true;
    queue.lock.lock();
    EXPECT_EQ(queue.dequeue(&in_error), received);
    queue.lock.unlock();
    EXPECT_FALSE(in_error) << "what the fixture takes for a mistake unless told that the peer writes";
}

TEST_P(Rdma, ASendBehindAWriteFindsItDone) {
    TestPair pair(level(), reach());
    for (uint32_t i = 0; i < 200; ++i) {
        pair.b.receive(pair.b.data(), 8);
        fill(pair.a.data() + 100, 20000, i);
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data() + 100, 20000, pair.b.data() + 100, pair.b.region));
        pair.a.send(pair.a.data(), 8);
        ASSERT_NE(pair.b.wait_recv(), nullptr);
        ASSERT_TRUE(filled(pair.b.data() + 100, 20000, i));
        ASSERT_NE(pair.a.wait_send(), nullptr);
        ASSERT_NE(pair.a.wait_send(), nullptr);
    }
}

TEST_P(Rdma, RefusedWritesTouchNothing) {
    struct Case {
        const char* name;
        std::function<void(TestVi& target, const std::byte** address, uint32_t* handle)> spoil;
    };
    const Case cases[] = {
        {"unknown handle", [](TestVi&, const std::byte**, uint32_t* handle) { *handle += 1u << kRegionIndexBits; }},
        {"beyond the end",
         [](TestVi& t, const std::byte** address, uint32_t*) { *address = t.data() + (1 << 20) - 99; }},
        {"before the start", [](TestVi& t, const std::byte** address, uint32_t*) { *address = t.data() - (1 << 30); }},
        {"region not enabled",
         [](TestVi& t, const std::byte** address, uint32_t* handle) {
             *handle = t.nic.add_region(const_cast<std::byte*>(*address), 100, kRegionRdmaRead);
         }},
        {"another tag",
         [](TestVi& t, const std::byte** address, uint32_t* handle) {
             *handle = t.nic.add_region(const_cast<std::byte*>(*address), 100, kRegionRdmaWrite, 7);
         }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Matcher matcher;
        matcher.same_process = reach() == Reach::same_process;
        const std::map<std::string, std::string> settings = {{"cross_copy", reach() == Reach::none ? "off" : "auto"}};
        TestNic nic_a(matcher, settings), nic_b(matcher, settings);
        TestVi a(nic_a, level()), b(nic_b, level());
        b.core.ptag = 3;
        connect(a, b);
        std::memset(b.data(), 0x33, 1 << 20);
        const std::byte* address = b.data();
        uint32_t handle = b.region;
        c.spoil(b, &address, &handle);
        a.post_send(a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, a.data(), 100, address, handle));
        EXPECT_TRUE(b.is_told(VIP_ERROR_RDMAW_PROT));
        VIP_DESCRIPTOR* d = a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, reception() ? uint32_t{VIP_STATUS_RDMA_PROT_ERROR} : 0u);
        EXPECT_TRUE(a.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        EXPECT_TRUE(b.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        for (int i = 0; i < 1 << 20; ++i) ASSERT_EQ(b.data()[i], std::byte{0x33});
    }
}

TEST_P(Rdma, AViThatDoesNotAllowItRefuses) {
    Matcher matcher;
    matcher.same_process = reach() == Reach::same_process;
    const std::map<std::string, std::string> settings = {{"cross_copy", reach() == Reach::none ? "off" : "auto"}};
    TestNic nic_a(matcher, settings), nic_b(matcher, settings);
    TestVi a(nic_a, level()), b(nic_b, level());
    b.core.traits.rdma_write = 0;
    connect(a, b);
    a.post_send(a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, a.data(), 100, b.data(), b.region));
    EXPECT_TRUE(b.is_told(VIP_ERROR_RDMAW_PROT));
}

TEST_P(Rdma, ReadsFetchWithoutACallOfTheTarget) {
    if (unreliable()) return;  // spec/reliability 6.1: there is none, and check_send refuses it
    TestPair pair(level(), reach(), 5u << 20);
    uint32_t seed = 100;
    for (const uint32_t size : {1u, 8u, 64u, 8192u, 8193u, 300000u, 4u << 20}) {
        SCOPED_TRACE(size);
        fill(pair.b.data() + 3, size, ++seed);
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), size, pair.b.data() + 3, pair.b.region));
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] {
            pair.a.recv_done();  // as VipSendDone does: the answer comes in on the receive side
            return (d = pair.a.send_done()) != nullptr;
        }));
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ});
        EXPECT_EQ(d->CS.Length, size);
        EXPECT_TRUE(filled(pair.a.data(), size, seed));
    }
}

TEST_P(Rdma, ReadsAndSendsCompleteInPostingOrder) {
    if (unreliable()) return;
    TestPair pair(level(), reach());
    constexpr uint32_t kRounds = 100;
    for (uint32_t i = 0; i < kRounds; ++i) pair.b.receive(pair.b.data() + 600000, 100);
    fill(pair.b.data(), 20000, 8);
    std::vector<VIP_DESCRIPTOR*> posted;
    for (uint32_t i = 0; i < kRounds; ++i) {
        VIP_DESCRIPTOR* read =
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), 20000, pair.b.data(), pair.b.region);
        pair.a.post_send(read);
        VIP_DESCRIPTOR* send = pair.a.make(false, pair.a.data() + 30000, 20, VIP_CONTROL_QFENCE);
        pair.a.post_send(send);
        posted.push_back(read);
        posted.push_back(send);
    }
    for (VIP_DESCRIPTOR* expected : posted) {
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] {
            pair.a.recv_done();
            return (d = pair.a.send_done()) != nullptr;
        }));
        ASSERT_EQ(d, expected);
        ASSERT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
    }
    EXPECT_TRUE(filled(pair.a.data(), 20000, 8));
}

TEST_P(Rdma, RefusedReadsBreakTheConnection) {
    if (unreliable()) return;
    TestPair pair(level(), reach());
    pair.a.post_send(
        pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), 100, pair.b.data(), pair.b.region + (1u << 17)));
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAR_PROT));
    VIP_DESCRIPTOR* d = nullptr;
    ASSERT_TRUE(eventually([&] {
        pair.a.recv_done();
        return (d = pair.a.send_done()) != nullptr;
    }));
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_RDMA_PROT_ERROR});
    EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
    EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
}

TEST_P(Rdma, ARefusedWriteWithImmediateIsToldByTheReceive) {
    TestPair pair(level(), reach());
    pair.b.receive(pair.b.data(), 10);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, pair.a.data(), 100,
                                      pair.b.data(), pair.b.region + (1u << 17)));
    VIP_DESCRIPTOR* d = pair.b.wait_recv();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d) & (VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK),
              uint32_t{VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR});
    EXPECT_TRUE(pair.b.errors().empty());
}

// The pattern of programs that poll memory: data first, the flag behind it last.
TEST_P(Rdma, TheLastBytesBecomeVisibleLast) {
    TestPair pair(level(), reach());
    constexpr uint32_t kWords = 700;
    auto* target = reinterpret_cast<std::atomic<uint32_t>*>(pair.b.data());
    std::atomic<uint32_t> rounds{0}, wrong{0};
    std::atomic<bool> stop{false};
    std::thread watcher([&] {
        uint32_t expected = 1;
        while (!stop) {
            if (target[kWords - 1].load(std::memory_order_acquire) != expected) continue;
            for (uint32_t i = 0; i + 1 < kWords; ++i)
                if (target[i].load(std::memory_order_relaxed) != expected) ++wrong;
            rounds = expected++;
        }
    });
    for (uint32_t round = 1; round <= 200; ++round) {
        auto* words = reinterpret_cast<uint32_t*>(pair.a.data());
        for (uint32_t i = 0; i < kWords; ++i) words[i] = round;
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), kWords * 4, pair.b.data(), pair.b.region));
        EXPECT_NE(pair.a.wait_send(), nullptr);
        if (!eventually([&] { return rounds == round; })) break;
    }
    stop = true;
    watcher.join();
    EXPECT_EQ(rounds, 200u);
    EXPECT_EQ(wrong, 0u);
}

// After deregistration returns, the memory is ours alone.
TEST_P(Rdma, DeregistrationEndsAllWriting) {
    TestPair pair(VIP_SERVICE_UNRELIABLE, reach());
    std::atomic<bool> stop{false};
    std::atomic<uint32_t> handle{0};
    std::byte* target = pair.b.data();
    std::atomic<uint32_t> written{0};
    std::thread writer([&] {
        std::memset(pair.a.data(), 0x77, 200000);
        while (!stop) {
            const uint32_t now = handle;
            if (now == 0) continue;
            pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 200000, target, now));
            pair.a.wait_send();
            ++written;
        }
    });
    uint32_t late = 0;
    for (int round = 0; round < 50; ++round) {
        const uint32_t made = pair.nic_b.add_region(target, 200000);
        handle = made;
        eventually([&] { return std::atomic_ref(reinterpret_cast<uint8_t&>(target[199999])).load() == 0x77; });
        pair.nic_b.remove_region(made);
        std::memset(target, 0, 200000);
        const uint32_t then = written;
        EXPECT_TRUE(tests::eventually("two more writes end", [&] { return written >= then + 2; }));
        for (int i = 0; i < 200000; ++i) late += target[i] != std::byte{0};
        std::memset(target, 0, 200000);
    }
    stop = true;
    writer.join();
    EXPECT_EQ(late, 0u);
}

TEST_P(Rdma, DisconnectEndsAllWriting) {
    for (int round = 0; round < 10; ++round) {
        TestPair pair(level(), reach());
        std::atomic<bool> stop{false}, has_ended{false};
        std::thread writer([&] {
            std::memset(pair.a.data(), 0x77, 200000);
            while (!stop && pair.a.state() == VIP_STATE_CONNECTED) {
                pair.a.post_send(
                    pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 200000, pair.b.data(), pair.b.region));
                for (int i = 0; i < 10000 && pair.a.send_done() == nullptr; ++i) {
                }
            }
            has_ended = true;
        });
        eventually([&] { return std::atomic_ref(reinterpret_cast<uint8_t&>(pair.b.data()[199999])).load() == 0x77; });
        pair.b.disconnect();
        std::memset(pair.b.data(), 0, 200000);
        EXPECT_TRUE(tests::eventually("the writer has noticed the end", [&] { return has_ended.load(); }));
        uint32_t late = 0;
        for (int i = 0; i < 200000; ++i) late += pair.b.data()[i] != std::byte{0};
        EXPECT_EQ(late, 0u);
        stop = true;
        writer.join();
    }
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Rdma,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::same_process, Reach::cross_copy, Reach::none)),
                         way_name);

TEST(CopyBetweenProcesses, ProbeTellsRightFromWrong) {
    uint64_t word = 0x123456789ABCDEF0u;
    EXPECT_TRUE(probe_process(::getpid(), reinterpret_cast<uintptr_t>(&word), word));
    EXPECT_FALSE(probe_process(::getpid(), reinterpret_cast<uintptr_t>(&word), word + 1));
    EXPECT_FALSE(probe_process(::getpid(), 0, word));
    EXPECT_FALSE(probe_process(0, reinterpret_cast<uintptr_t>(&word), word));
}

}  // namespace
}  // namespace viaduct::paramnet::test
