// SPDX-License-Identifier: BSD-2-Clause
// Messages through the lanes: every way they travel, wrap-around, backlog, credits, order.
#include "paramnet_fixture.hpp"

#include <random>

namespace viaduct::paramnet::test {
namespace {

class Lanes : public testing::TestWithParam<uint16_t> {};

TEST_P(Lanes, CarryMessagesOfEverySizeClassUnchanged) {
    constexpr size_t kLargest = 4u << 20;
    TestPair pair(GetParam(), Reach::same_process, 2 * kLargest, {{"pull_from", "0"}});
    uint32_t seed = 0;
    for (const uint32_t size :
         {1u,    2u,    3u,    4u,    7u,    8u,    9u,     15u,    16u,     17u,      31u,     32u,
          33u,   47u,   48u,   49u,   63u,   64u,   65u,    111u,   112u,    113u,     128u,    129u,
          1000u, 4095u, 4096u, 8191u, 8192u, 8193u, 65536u, 65600u, 262144u, 1048577u, 4194304u}) {
        SCOPED_TRACE(size);
        std::memset(pair.b.data(), 0xEE, size + 1);
        fill(pair.a.data(), size, ++seed);
        pair.b.receive(pair.b.data(), size);
        pair.a.send(pair.a.data(), size, VIP_CONTROL_IMMEDIATE);
        VIP_DESCRIPTOR* received = pair.b.wait_recv();
        ASSERT_NE(received, nullptr);
        EXPECT_EQ(status_of(received),
                  uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE});
        EXPECT_EQ(received->CS.Length, size);
        EXPECT_TRUE(filled(pair.b.data(), size, seed));
        EXPECT_EQ(pair.b.data()[size], std::byte{0xEE});
        VIP_DESCRIPTOR* sent = pair.a.wait_send();
        ASSERT_NE(sent, nullptr);
        EXPECT_EQ(status_of(sent), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_SEND});
        EXPECT_EQ(sent->CS.Length, size);
    }
}

TEST_P(Lanes, StayInOrderOverManyLaps) {
    TestPair pair(GetParam());
    std::mt19937 random(GetParam());
    constexpr uint32_t kMessages = 6000, kSlot = 12000, kWindow = 40;
    uint32_t sent = 0, received = 0, posted = 0, reaped = 0;
    std::vector<uint32_t> sizes(kMessages);
    for (uint32_t& size : sizes) size = random() % 8 == 0 ? random() % kSlot : random() % 120;
    while (received < kMessages) {
        while (posted < kMessages && posted < received + kWindow) {
            pair.b.receive(pair.b.data() + (posted % kWindow) * kSlot, kSlot);
            ++posted;
        }
        while (sent < posted && sent < reaped + kWindow && random() % 4 != 0) {
            std::byte* from = pair.a.data() + (sent % kWindow) * kSlot;
            fill(from, sizes[sent], sent);
            pair.a.send(from, sizes[sent]);
            ++sent;
        }
        while (VIP_DESCRIPTOR* d = pair.b.recv_done()) {
            ASSERT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
            ASSERT_EQ(d->CS.Length, sizes[received]);
            ASSERT_TRUE(filled(pair.b.data() + (received % kWindow) * kSlot, sizes[received], received))
                << received;
            ++received;
        }
        while (pair.a.send_done() != nullptr) ++reaped;
    }
    EXPECT_GT(sent, kLines * 4);
    EXPECT_EQ(pair.a.state(), uint32_t{VIP_STATE_CONNECTED});
}

TEST_P(Lanes, GatherAndScatterOverManySegments) {
    TestPair pair(GetParam());
    constexpr uint32_t kSegments = 14;
    uint32_t total = 0;
    VIP_DESCRIPTOR* from = pair.a.make(false, nullptr, 0);
    VIP_DESCRIPTOR* to = pair.b.make(true, nullptr, 0);
    for (uint32_t i = 0; i < kSegments; ++i) {
        const uint32_t n = i == 3 ? 0 : 700 * i + 1;  // a segment of no bytes in between
        from->DS[i].Local = {
            {reinterpret_cast<uintptr_t>(pair.a.data() + total)}, n == 0 ? 12345u : pair.a.region, n};
        const uint32_t m = 700 * (kSegments - i) + 3;
        to->DS[i].Local = {{reinterpret_cast<uintptr_t>(pair.b.data() + i * 20000)}, pair.b.region, m};
        total += n;
    }
    from->CS.SegCount = to->CS.SegCount = kSegments;
    from->CS.Length = total;
    fill(pair.a.data(), total, 77);
    pair.b.post_recv(to);
    pair.a.post_send(from);
    VIP_DESCRIPTOR* received = pair.b.wait_recv();
    ASSERT_NE(received, nullptr);
    ASSERT_EQ(received->CS.Length, total);
    std::vector<std::byte> all;
    for (uint32_t i = 0; i < kSegments; ++i)
        all.insert(all.end(), pair.b.data() + i * 20000,
                   pair.b.data() + i * 20000 + 700 * (kSegments - i) + 3);
    EXPECT_TRUE(filled(all.data(), total, 77));
}

TEST_P(Lanes, HoldWhatDoesNotFitUntilTheReceiverComes) {
    TestPair pair(GetParam(), Reach::same_process, 1000 * 1000);
    constexpr uint32_t kMessages = 900;
    for (uint32_t i = 0; i < kMessages; ++i) pair.b.receive(pair.b.data() + i * 1000, 1000);
    {
        const TakesNothing later(pair.b);
        for (uint32_t i = 0; i < kMessages; ++i) {
            fill(pair.a.data() + i * 1000, 1000, i);
            pair.a.send(pair.a.data() + i * 1000, 1000);
        }
        EXPECT_EQ(pair.nic_a.context->backlogs.load(), 1u);
    }
    for (uint32_t i = 0; i < kMessages; ++i) {
        ASSERT_NE(pair.b.wait_recv(), nullptr);
        ASSERT_TRUE(filled(pair.b.data() + i * 1000, 1000, i));
        pair.a.send_done();
    }
    EXPECT_TRUE(eventually([&] {
        pair.a.send_done();
        return pair.nic_a.context->backlogs.load() == 0;
    }));
}

TEST_P(Lanes, EmptyABacklogWithoutAPollAtEitherEnd) {
    TestPair pair(GetParam(), Reach::same_process, 1000 * 1000, {{"pull_from", "0"}});
    pair.b.receive(pair.b.data(), 900000);
    fill(pair.a.data(), 900000, 5);
    pair.a.send(pair.a.data(), 900000);
    const VIP_DESCRIPTOR* d = pair.a.descriptor(false, 0);
    EXPECT_TRUE(eventually(
        [&] { return (std::atomic_ref(const_cast<VIP_DESCRIPTOR*>(d)->CS.Status).load() & 1) != 0; }));
    ASSERT_NE(pair.b.wait_recv(), nullptr);
    EXPECT_TRUE(filled(pair.b.data(), 900000, 5));
}

TEST_P(Lanes, HoldSendsUntilThePeerHasStarted) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, GetParam()), b(nic_b, GetParam());
    b.receive(b.data(), 100);
    ConnectOp* from_a = begin_connect(a, "start");
    ConnectOp* from_b = begin_connect(b, "start");
    finish_connect(a, from_a);
    fill(a.data(), 20, 3);
    a.send(a.data(), 20);
    EXPECT_EQ(a.send_done(), nullptr);
    EXPECT_EQ(a.state(), uint32_t{VIP_STATE_CONNECTED});
    finish_connect(b, from_b);
    EXPECT_TRUE(eventually([&] {
        a.send_done();
        return b.recv_done() != nullptr;
    }));
    EXPECT_TRUE(filled(b.data(), 20, 3));
    EXPECT_TRUE(a.errors().empty());
}

TEST_P(Lanes, WorkBothWaysAtOnceBetweenTwoThreads) {
    TestPair pair(GetParam());
    constexpr uint32_t kMessages = 20000, kWindow = 64, kSlot = 256;
    std::atomic<bool> failed{false};
    const auto run = [&](TestVi& vi, uint32_t own, uint32_t other) {
        uint32_t posted = kWindow, sent = 0, received = 0, reaped = 0;
        while ((received < kMessages || reaped < kMessages) && !failed) {
            // The other end has a receive for message n when it has taken message n - window, which it tells
            // by having sent that many itself: a window in lock-step.
            if (sent < kMessages && sent < received + kWindow / 2) {
                std::byte* from = vi.data() + (kWindow + sent % kWindow) * kSlot;
                const uint32_t n = sent * 7 % kSlot;
                fill(from, n, sent * 2 + own);
                vi.send(from, n);
                ++sent;
            }
            if (VIP_DESCRIPTOR* d = vi.recv_done()) {
                const uint32_t n = received * 7 % kSlot;
                if (d->CS.Length != n ||
                    !filled(vi.data() + received % kWindow * kSlot, n, received * 2 + other))
                    failed = true;
                ++received;
                vi.receive(vi.data() + posted++ % kWindow * kSlot, kSlot);
            }
            if (vi.send_done() != nullptr) ++reaped;
            if (vi.state() != VIP_STATE_CONNECTED) failed = true;
        }
    };
    for (TestVi* vi : {&pair.a, &pair.b})
        for (uint32_t i = 0; i < kWindow; ++i) vi->receive(vi->data() + i * kSlot, kSlot);
    std::thread other([&] { run(pair.b, 1, 0); });
    run(pair.a, 0, 1);
    other.join();
    EXPECT_FALSE(failed);
}

TEST_P(Lanes, MayJoinTwoVisOfOneContextInOneThread) {
    Matcher matcher;
    TestNic nic(matcher);
    TestVi a(nic, GetParam()), b(nic, GetParam());
    connect(a, b);
    for (uint32_t i = 0; i < 1000; ++i) {
        b.receive(b.data(), 200);
        fill(a.data(), 200, i);
        a.send(a.data(), 200);
        ASSERT_NE(b.wait_recv(), nullptr);
        ASSERT_TRUE(filled(b.data(), 200, i));
        ASSERT_NE(a.wait_send(), nullptr);
    }
}

TEST_P(Lanes, KeepTwoConnectionsOfTheSamePairApart) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a1(nic_a, GetParam()), a2(nic_a, GetParam()), b1(nic_b, GetParam()), b2(nic_b, GetParam());
    connect(a1, b1);
    connect(a2, b2);
    EXPECT_EQ(a1.endpoint().joint.peer, a2.endpoint().joint.peer);
    b1.receive(b1.data(), 8);
    b2.receive(b2.data(), 8);
    fill(a1.data(), 8, 1);
    fill(a2.data(), 8, 2);
    a2.send(a2.data(), 8);
    a1.send(a1.data(), 8);
    ASSERT_NE(b1.wait_recv(), nullptr);
    ASSERT_NE(b2.wait_recv(), nullptr);
    EXPECT_TRUE(filled(b1.data(), 8, 1));
    EXPECT_TRUE(filled(b2.data(), 8, 2));
    a1.disconnect();
    EXPECT_TRUE(b1.reaches(VIP_STATE_ERROR));
    EXPECT_EQ(b2.state(), uint32_t{VIP_STATE_CONNECTED});
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Lanes, testing::ValuesIn(kLevels));

TEST(LaneReception, CompletesASendOnlyWhenItWasPlaced) {
    TestPair pair(VIP_SERVICE_RELIABLE_RECEPTION);
    pair.b.receive(pair.b.data(), 8);
    {
        const TakesNothing later(pair.b);
        pair.a.send(pair.a.data(), 8);
        EXPECT_EQ(pair.a.send_done(), nullptr);
    }
    ASSERT_NE(pair.b.wait_recv(), nullptr);
    EXPECT_NE(pair.a.wait_send(), nullptr);
}

TEST(LargeMessages, AreFetchedFromTheSenderInOneCopy) {
    for (const Reach reach : {Reach::same_process, Reach::cross_copy}) {
        TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY, reach, 2u << 20, {{"pull_from", "100000"}});
        pair.b.receive(pair.b.data(), 2u << 20);
        fill(pair.a.data(), 1500000, 9);
        pair.a.send(pair.a.data(), 1500000, VIP_CONTROL_IMMEDIATE);
        EXPECT_EQ(pair.a.endpoint().tx.next, 1u) << "one line says where the bytes are";
        VIP_DESCRIPTOR* d = pair.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(d->CS.Length, 1500000u);
        EXPECT_TRUE(filled(pair.b.data(), 1500000, 9));
        EXPECT_NE(pair.a.wait_send(), nullptr);
    }
}

TEST(LargeMessages, AreNotDeliveredFromASenderThatHasLeft) {
    TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY, Reach::same_process, 2u << 20, {{"pull_from", "100000"}});
    pair.b.receive(pair.b.data(), 2u << 20);
    {
        const TakesNothing later(pair.b);
        pair.a.send(pair.a.data(), 1500000);
        pair.a.disconnect();
    }
    VIP_DESCRIPTOR* sent = pair.a.send_done();
    ASSERT_NE(sent, nullptr);
    EXPECT_NE(status_of(sent) & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
    ASSERT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
    VIP_DESCRIPTOR* d = pair.b.recv_done();
    ASSERT_NE(d, nullptr);
    EXPECT_NE(status_of(d) & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
}

}  // namespace
}  // namespace viaduct::paramnet::test
