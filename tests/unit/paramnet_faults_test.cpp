// SPDX-License-Identifier: BSD-2-Clause
// The fault plan: its text, its repeatability, and what each reliability level makes of it (spec/reliability
// 6).
#include "paramnet_fixture.hpp"

#include "providers/paramnet/faults.hpp"

namespace viaduct::paramnet::test {
namespace {

TEST(FaultPlanText, IsReadInAnyOrderAndSubset) {
    FaultPlan plan;
    ASSERT_TRUE(parse_fault_plan("drop=0.25,seed=7,delay_us=30,linkdown=0,corrupt=1,duplicate=0.5", &plan));
    EXPECT_EQ(plan.seed, 7u);
    EXPECT_EQ(plan.drop, 0.25);
    EXPECT_EQ(plan.corrupt, 1.0);
    EXPECT_EQ(plan.duplicate, 0.5);
    EXPECT_EQ(plan.delay_us, 30u);
    EXPECT_FALSE(plan.link_down);
    ASSERT_TRUE(parse_fault_plan("linkdown=1", &plan));
    EXPECT_TRUE(plan.link_down);
    EXPECT_EQ(plan.drop, 0.0);
    ASSERT_TRUE(parse_fault_plan("", &plan));
    EXPECT_FALSE(plan.active());
    ASSERT_TRUE(parse_fault_plan(nullptr, &plan));
    EXPECT_FALSE(plan.active());
}

TEST(FaultPlanText, ThatMakesNoSenseIsRefused) {
    FaultPlan plan;
    for (const char* text :
         {"drop", "drop=", "drop=x", "drop=1.5", "drop=-1", "loss=1", "linkdown=2", "seed=-1",
          "drop=0.1;seed=1", "delay_us=99999999999", "drop=0.5x", "=1", "drop=nan"})
        EXPECT_FALSE(parse_fault_plan(text, &plan)) << text;
}

TEST(FaultModelRun, IsTheSameForTheSameSeed) {
    FaultPlan plan;
    plan.drop = 0.3;
    plan.corrupt = 0.1;
    plan.seed = 11;
    FaultModel one(plan), two(plan);
    plan.seed = 12;
    FaultModel other(plan);
    int lost = 0, same = 0;
    for (int i = 0; i < 10000; ++i) {
        const FaultOutcome outcome = one.decide(false);
        ASSERT_EQ(outcome, two.decide(false));
        same += outcome == other.decide(false);
        lost += outcome != FaultOutcome::arrives;
    }
    EXPECT_LT(same, 9000);
    EXPECT_NEAR(lost, 3700, 200);
    EXPECT_EQ(one.counters().dropped + one.counters().corrupted, static_cast<uint64_t>(lost));
}

class Faults : public testing::TestWithParam<uint16_t> {
protected:
    bool unreliable() const { return GetParam() == VIP_SERVICE_UNRELIABLE; }
};

TEST_P(Faults, LoseOnUnreliableAndNowhereElse) {
    TestPair pair(GetParam());
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "seed=3,drop=0.2,corrupt=0.1,duplicate=0.3"), Status::ok);
    constexpr uint32_t kMessages = 500;
    for (uint32_t i = 0; i < kMessages; ++i) pair.b.receive(pair.b.data() + i * 16, 16);
    for (uint32_t i = 0; i < kMessages; ++i) {
        std::memcpy(pair.a.data() + i * 16, &i, 4);
        pair.a.send(pair.a.data() + i * 16, 16);
    }
    uint32_t received = 0, last = 0;
    int quiet = 0;
    while (quiet < 1000 && received < kMessages) {
        VIP_DESCRIPTOR* d = pair.b.recv_done();
        pair.a.send_done();
        if (d == nullptr) {
            ++quiet;
            continue;
        }
        quiet = 0;
        uint32_t number = 0;
        std::memcpy(&number, pair.b.data() + received * 16, 4);
        ASSERT_TRUE(received == 0 || number > last) << "never twice, never out of order";
        last = number;
        ++received;
    }
    const FaultCounters& counted = pair.a.endpoint().tx.network.faults->counters();
    EXPECT_GT(counted.duplicated, 0u);
    // What vipstat shows of it.
    const auto shown = [&](ViCount what) {
        return pair.a.core.stats.counts[static_cast<size_t>(what)].load();
    };
    EXPECT_EQ(shown(ViCount::retries), counted.retransmitted);
    EXPECT_EQ(shown(ViCount::drops),
              counted.duplicated + (unreliable() ? counted.dropped + counted.corrupted : counted.given_up));
    if (unreliable()) {
        EXPECT_NEAR(received, kMessages * 0.72, 60);
        EXPECT_EQ(received + counted.dropped + counted.corrupted, kMessages);
    } else {
        EXPECT_EQ(received, kMessages);
        EXPECT_GT(counted.retransmitted, 100u);
        EXPECT_EQ(counted.given_up, 0u);
    }
    EXPECT_EQ(pair.a.state(), uint32_t{VIP_STATE_CONNECTED});
}

TEST_P(Faults, ThatLetNothingThroughBreakReliableConnections) {
    for (const char* plan : {"drop=1", "corrupt=1", "linkdown=1"}) {
        SCOPED_TRACE(plan);
        TestPair pair(GetParam());
        ASSERT_EQ(ops().set_fault_plan(pair.a.core, plan), Status::ok);
        pair.b.receive(pair.b.data(), 100);
        pair.a.send(pair.a.data(), 100);
        pair.a.send(pair.a.data(), 100);
        VIP_DESCRIPTOR* first = pair.a.wait_send();
        VIP_DESCRIPTOR* second = pair.a.wait_send();
        ASSERT_TRUE(first != nullptr && second != nullptr);
        if (unreliable()) {
            EXPECT_EQ(status_of(first) & VIP_STATUS_ERROR_MASK, 0u);
            EXPECT_EQ(pair.b.recv_done(), nullptr);
            EXPECT_EQ(pair.b.state(), uint32_t{VIP_STATE_CONNECTED});
            EXPECT_TRUE(pair.a.errors().empty() && pair.b.errors().empty());
        } else {
            EXPECT_EQ(status_of(first) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_TRANSPORT_ERROR});
            EXPECT_EQ(pair.a.core.stats.counts[static_cast<size_t>(ViCount::errors)].load(), 1u);
            EXPECT_EQ(status_of(second) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_DESC_FLUSHED_ERROR});
            EXPECT_TRUE(pair.a.is_told(VIP_ERROR_CONN_LOST));
            EXPECT_TRUE(pair.b.is_told(VIP_ERROR_CONN_LOST));
            EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
        }
    }
}

TEST_P(Faults, ALinkThatIsDownIsDownForBothEnds) {
    TestPair pair(GetParam());
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "linkdown=1"), Status::ok);
    ASSERT_TRUE(eventually([&] { return pair.b.endpoint().link_down_seen.load() == 1; }));
    pair.a.receive(pair.a.data(), 100);
    pair.b.send(pair.b.data(), 100);
    VIP_DESCRIPTOR* d = pair.b.wait_send();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, unreliable() ? 0u : uint32_t{VIP_STATUS_TRANSPORT_ERROR});
    if (unreliable()) {
        EXPECT_EQ(pair.a.recv_done(), nullptr);
    } else {  // the connection is lost, and the receive comes back unused
        VIP_DESCRIPTOR* unused = pair.a.wait_recv();
        ASSERT_NE(unused, nullptr);
        EXPECT_EQ(status_of(unused) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_DESC_FLUSHED_ERROR});
    }
}

TEST_P(Faults, DelayHoldsAMessageBack) {
    TestPair pair(GetParam());
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "delay_us=30000"), Status::ok);
    pair.b.receive(pair.b.data(), 100);
    const tests::RunningTime time;
    pair.a.send(pair.a.data(), 100);
    ASSERT_NE(pair.b.wait_recv(), nullptr) << "though no thread polls the sender";
    EXPECT_GE(time.wall_ns(), 30'000'000);
    EXPECT_NE(pair.a.wait_send(), nullptr);
}

TEST_P(Faults, AnEmptyPlanEndsThem) {
    TestPair pair(VIP_SERVICE_UNRELIABLE);
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "drop=1"), Status::ok);
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "nonsense"), Status::invalid);
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, ""), Status::ok);
    pair.b.receive(pair.b.data(), 100);
    pair.a.send(pair.a.data(), 100);
    EXPECT_NE(pair.b.wait_recv(), nullptr);
}

TEST_P(Faults, ADamagedRdmaWriteIsDroppedAndTold) {
    TestPair pair(VIP_SERVICE_UNRELIABLE);
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "corrupt=1"), Status::ok);
    std::memset(pair.b.data(), 0, 100);
    std::memset(pair.a.data(), 1, 100);
    pair.a.post_send(
        pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 100, pair.b.data(), pair.b.region));
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAW_DATA));
    EXPECT_EQ(pair.b.data()[0], std::byte{0});
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Faults, testing::ValuesIn(kLevels));

}  // namespace
}  // namespace viaduct::paramnet::test
