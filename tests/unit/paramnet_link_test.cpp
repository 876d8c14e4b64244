// SPDX-License-Identifier: BSD-2-Clause
// When messages arrive that pass the modelled network: the arithmetic by exact times, and that the data path
// keeps to it. Never earlier is a promise; how much later depends on the machine and is no test's business.
#include "paramnet_fixture.hpp"

#include "core/clock/clock.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/link_model.hpp"
#include "tests/eventually.hpp"

namespace viaduct::paramnet::test {
namespace {

// One byte a nanosecond, and numbers that show by whose hand they were added.
LinkModel simple() {
    LinkModel m;
    m.rate = 1'000'000'000;
    m.packet = 100;
    m.header = 10;
    m.out_ns = 1000;
    m.hop_ns = 20;
    m.switches = 3;
    m.in_ns = 500;
    m.receiver_has_link = true;
    return m;
}

TEST(LinkModelTime, OfAMessageIsThatOfItsPackets) {
    const LinkModel m = simple();
    EXPECT_EQ(m.wire_ns(0), 10);  // a packet without payload
    EXPECT_EQ(m.wire_ns(1), 11);
    EXPECT_EQ(m.wire_ns(100), 110);
    EXPECT_EQ(m.wire_ns(101), 121);
    EXPECT_EQ(m.wire_ns(1000), 1100);
}

TEST(LinkModelTime, OfOneMessageIsTheSumOfItsWay) {
    LinkFree out{0}, in{0};
    EXPECT_EQ(simple().arrival(5000, 100, out, in), 5000 + 1000 + 3 * 20 + 110 + 500);
    EXPECT_EQ(out, 6110);
    EXPECT_EQ(in, 6170);
}

TEST(LinkModelTime, OfMessagesInARowIsThatOfTheLink) {
    LinkFree out{0}, in{0};
    const int64_t first = simple().arrival(0, 100, out, in);
    for (int i = 1; i < 10; ++i) EXPECT_EQ(simple().arrival(0, 100, out, in), first + i * 110);
    // The link has been free for long: no debt, no credit.
    EXPECT_EQ(simple().arrival(100'000, 100, out, in), first + 100'000);
}

TEST(LinkModelTime, IsSharedBySendersToOne) {
    LinkFree out_a{0}, out_b{0}, in{0};
    const int64_t first = simple().arrival(0, 100, out_a, in);
    EXPECT_EQ(simple().arrival(0, 100, out_b, in), first + 110);
    EXPECT_EQ(simple().arrival(0, 100, out_a, in), first + 220);
}

TEST(LinkModelTime, IsNotSharedByReceiversOfDifferentSenders) {
    LinkFree out_a{0}, out_b{0}, in_a{0}, in_b{0};
    EXPECT_EQ(simple().arrival(0, 100, out_a, in_a), simple().arrival(0, 100, out_b, in_b));
}

TEST(LinkModelTime, OfAnAnswerIsThereAndBack) {
    LinkFree out{0}, in{0}, back{0};
    EXPECT_EQ(simple().answer_arrival(0, 0, 100, out, in, back), (1000 + 60 + 10 + 500) + (60 + 110 + 500));
    EXPECT_EQ(out, 1010);
    EXPECT_EQ(in, 1070);
    EXPECT_EQ(back, 1630 + 110);
}

TEST(LinkModelTime, OfALinkWithNothingButARateIsThatOfItsBytes) {
    LinkModel m;
    m.rate = 100;
    LinkFree out{0}, in{0};
    EXPECT_EQ(m.arrival(7, 50, out, in), 7 + 500'000'000);
    EXPECT_EQ(m.arrival(7, 400, out, in), 7 + 4'500'000'000) << "however slow";
    EXPECT_EQ(in, 0) << "its receiver has none";
}

// Its word lies in memory that peers may write.
TEST(LinkModelTime, IsNoLongerThanASecondForAReceiverThatLies) {
    for (const int64_t lie : {INT64_MAX, INT64_MIN, int64_t{3'000'000'000'000'000'000}}) {
        LinkFree out{0}, in{lie};
        const int64_t arrival = simple().arrival(0, 100, out, in);
        EXPECT_GE(arrival, 1000 + 60 + 110 + 500);
        EXPECT_LE(arrival, 1000 + 60 + 110 + 500 + 1'000'000'000);
        EXPECT_LE(in, 2'000'000'000) << "and the next one finds it mended";
    }
}

TEST(Paramnet2, TakesNineMicrosecondsAndHasTwoAndAHalfGigabits) {
    LinkFree out{0}, in{0};
    const LinkModel m = paramnet2(1);
    const int64_t shortest = m.arrival(0, 0, out, in);
    EXPECT_GE(shortest, 8'000);
    EXPECT_LE(shortest, 10'000);
    EXPECT_NEAR(static_cast<double>(m.wire_ns(1'000'000)), 1e6 / 0.3125, 0.03 * 1e6 / 0.3125);
    LinkFree fresh_out{0}, fresh_in{0};
    EXPECT_EQ(paramnet2(3).arrival(0, 0, fresh_out, fresh_in), shortest + 2 * 500);
}

const std::map<std::string, std::string> kModelled{{"timing", "paramnet2"}};

class Modelled : public testing::TestWithParam<uint16_t> {};

TEST_P(Modelled, MessagesComeInOrderAndNoneBeforeItsTime) {
    TestPair pair(GetParam(), Reach::same_process, 1 << 20, kModelled);
    constexpr uint32_t kMessages = 100, kBytes = 5000;
    for (uint32_t i = 0; i < kMessages; ++i) pair.b.receive(pair.b.data() + i * kBytes, kBytes);
    const tests::RunningTime time;
    for (uint32_t i = 0; i < kMessages; ++i) {
        fill(pair.a.data() + i * kBytes, kBytes, i);
        pair.a.send(pair.a.data() + i * kBytes, kBytes);
    }
    const LinkModel m = paramnet2(1);
    for (uint32_t i = 0; i < kMessages; ++i) {
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] {
            pair.a.send_done();
            return (d = pair.b.recv_done()) != nullptr;
        }));
        const int64_t passed = time.wall_ns();
        EXPECT_GE(passed, 9'000 + (i + 1) * m.wire_ns(kBytes));
        EXPECT_EQ(d->CS.Length, kBytes);
        EXPECT_TRUE(filled(pair.b.data() + i * kBytes, kBytes, i));
    }
    EXPECT_EQ(pair.a.state(), uint32_t{VIP_STATE_CONNECTED});
}

// The NIC moves data while the program computes: no thread polls the sender's queue here.
TEST_P(Modelled, AMessageArrivesAlthoughItsSenderCallsNothing) {
    TestPair pair(GetParam(), Reach::same_process, 1 << 20, kModelled);
    pair.b.receive(pair.b.data(), 64);
    fill(pair.a.data(), 64, 1);
    pair.a.send(pair.a.data(), 64);
    EXPECT_NE(pair.b.wait_recv(), nullptr);
    EXPECT_TRUE(filled(pair.b.data(), 64, 1));
}

INSTANTIATE_TEST_SUITE_P(Levels, Modelled, testing::ValuesIn(kLevels));

TEST(ModelledRdma, IsNotThereBeforeItsTime) {
    TestPair pair(kLevel, Reach::same_process, 1 << 20, kModelled);
    constexpr uint32_t kBytes = 100'000;
    fill(pair.a.data(), kBytes, 3);
    const tests::RunningTime time;
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), kBytes, pair.b.data(), pair.b.region));
    ASSERT_NE(pair.a.wait_send(), nullptr);
    const LinkModel m = paramnet2(1);
    EXPECT_GE(time.wall_ns(), 9'000 + m.wire_ns(kBytes));
    EXPECT_TRUE(filled(pair.b.data(), kBytes, 3));

    const tests::RunningTime of_read;
    pair.a.post_send(
        pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data() + kBytes, kBytes, pair.b.data(), pair.b.region));
    ASSERT_NE(pair.a.wait_send(), nullptr);
    EXPECT_GE(of_read.wall_ns(), 13'000 + m.wire_ns(kBytes)) << "there and back";
    EXPECT_TRUE(filled(pair.a.data() + kBytes, kBytes, 3));
}

// A message on its way is part of what the NIC has taken: it neither arrives nor stays when its sender
// leaves.
TEST(ModelledEnd, FlushesWhatIsOnItsWay) {
    TestPair pair(kLevel, Reach::same_process, 1 << 20, {{"link_rate", "100"}});
    pair.b.receive(pair.b.data(), 1000);
    pair.a.send(pair.a.data(), 1000);  // ten seconds
    EXPECT_EQ(pair.a.send_done(), nullptr);
    pair.a.disconnect();
    VIP_DESCRIPTOR* d = pair.a.send_done();
    ASSERT_NE(d, nullptr);
    EXPECT_NE(status_of(d) & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
    VIP_DESCRIPTOR* receive = pair.b.recv_done();  // the news of the end may be there already
    EXPECT_TRUE(receive == nullptr || (status_of(receive) & VIP_STATUS_DESC_FLUSHED_ERROR) != 0);
}

// What is spoilt on its way, by the program that owns it, leaves nothing of its time to the next one.
TEST(ModelledEnd, ASpoiltMessageTakesItsTimeWithIt) {
    TestPair pair(VIP_SERVICE_UNRELIABLE, Reach::same_process, 1 << 20, {{"link_rate", "1000000"}});
    VIP_DESCRIPTOR* spoilt = pair.a.make(false, pair.a.data(), 20'000);
    {
        const std::lock_guard held(pair.a.core.send.lock);  // no thread looks at it before it is spoilt
        pair.a.core.send.push(spoilt);
        ops().kick_send(pair.a.core);  // 20 ms
        EXPECT_EQ(status_of(spoilt) & VIP_STATUS_DONE, 0u);
        spoilt->DS[0].Local.Handle = 0;
    }
    ASSERT_EQ(pair.a.wait_send(), spoilt);
    EXPECT_NE(status_of(spoilt) & VIP_STATUS_PROTECTION_ERROR, 0u);

    pair.b.receive(pair.b.data(), 100'000);
    const tests::RunningTime time;
    pair.a.send(pair.a.data(), 100'000);
    ASSERT_NE(pair.a.wait_send(), nullptr);
    EXPECT_GE(time.wall_ns(), 100'000'000);
}

}  // namespace
}  // namespace viaduct::paramnet::test
