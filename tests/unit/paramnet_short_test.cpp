// SPDX-License-Identifier: BSD-2-Clause
// Short sends go many at a time without a look at what allows them (Tx::burst_credit). They end where they must.
#include "paramnet_fixture.hpp"

#include <string>

#include "providers/paramnet/receive.hpp"

namespace viaduct::paramnet::test {
namespace {

constexpr uint32_t kBytes = 8;

void post(TestVi& vi, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) vi.receive(vi.data() + size_t{i} * kBytes, kBytes);
}

void send(TestVi& vi, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        fill(vi.data() + size_t{i} * kBytes, kBytes, i);
        vi.send(vi.data() + size_t{i} * kBytes, kBytes);
    }
}

void expect_arrivals(TestVi& vi, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        ASSERT_NE(vi.wait_recv(), nullptr) << i;
        ASSERT_TRUE(filled(vi.data() + size_t{i} * kBytes, kBytes, i)) << i;
    }
    EXPECT_EQ(vi.recv_done(), nullptr);
}

class ShortSends : public testing::TestWithParam<uint16_t> {};

TEST_P(ShortSends, WaitWhereTheLaneIsFull) {
    TestPair pair(GetParam());
    constexpr uint32_t kMessages = kLines + 50;
    post(pair.b, kMessages);
    {
        const TakesNothing later(pair.b);
        send(pair.a, kMessages);
        EXPECT_EQ(pair.nic_a.context->backlogs.load(), 1u);
    }
    expect_arrivals(pair.b, kMessages);
}

TEST_P(ShortSends, EndWhereTheReceivesEnd) {
    TestPair pair(GetParam());
    constexpr uint32_t kReceives = 40;
    post(pair.b, kReceives);
    send(pair.a, kReceives);
    EXPECT_TRUE(pair.b.errors().empty());
    pair.a.send(pair.a.data(), kBytes);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RECVQ_EMPTY));
    expect_arrivals(pair.b, kReceives);
}

TEST_P(ShortSends, MeetAFaultPlanThatComesBetweenThem) {
    TestPair pair(GetParam());
    constexpr uint32_t kBefore = 5;
    post(pair.b, 40);
    send(pair.a, kBefore);
    expect_arrivals(pair.b, kBefore);
    ASSERT_EQ(ops().set_fault_plan(pair.a.core, "linkdown=1"), Status::ok);
    const uint32_t next = pair.a.endpoint().tx.next;
    pair.a.send(pair.a.data(), kBytes);
    EXPECT_EQ(pair.a.endpoint().tx.next, next) << "it has not been put into the lane";
}

TEST_P(ShortSends, StayInOrderAmongAllOthers) {
    TestPair pair(GetParam());
    constexpr uint32_t kRounds = 200, kLong = 3000, kLonger = 20000;
    for (uint32_t i = 0; i < kRounds; ++i) {
        const uint32_t sizes[] = {kBytes, kBytes, i % 113, kLong, kBytes, kLonger, kBytes};
        for (const uint32_t size : sizes) {
            fill(pair.a.data(), size, i + size);
            pair.b.receive(pair.b.data(), size == 0 ? 1 : size);
            pair.a.send(pair.a.data(), size, i % 3 == 0 ? VIP_CONTROL_IMMEDIATE : 0);
            const VIP_DESCRIPTOR* d = pair.b.wait_recv();
            ASSERT_NE(d, nullptr) << i;
            ASSERT_EQ(d->CS.Length, size) << i;
            ASSERT_EQ((status_of(d) & VIP_STATUS_IMMEDIATE) != 0, i % 3 == 0) << i;
            ASSERT_TRUE(filled(pair.b.data(), size, i + size)) << i;
            ASSERT_NE(pair.a.wait_send(), nullptr) << i;
        }
    }
}

// How many lines may be taken one at a time is counted from where the application was when it counted.
TEST_P(ShortSends, AreTakenInGeneralAfterAThreadOfOursHasTakenSome) {
    TestPair pair(GetParam());
    post(pair.b, 2);
    Endpoint& ep = pair.b.endpoint();
    ep.rx.poll_budget = 5;
    send(pair.a, 2);
    {
        const BiasedLockGuard recv(pair.b.core.recv.lock), send(pair.b.core.send.lock);
        ep.servicing = true;
        serve_lines(ep, 8);
        ep.servicing = false;
        EXPECT_EQ(ep.rx.poll_budget, 0u);
    }
    expect_arrivals(pair.b, 2);
}

INSTANTIATE_TEST_SUITE_P(Paramnet, ShortSends, testing::ValuesIn(kLevels));

}  // namespace
}  // namespace viaduct::paramnet::test
