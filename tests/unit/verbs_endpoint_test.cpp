// SPDX-License-Identifier: BSD-2-Clause
// What an endpoint costs others: the lines of the cache it shares, and the wait for threads that still use it; and
// how its connection ends.
#include "providers/verbs/endpoint.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/clock/clock.hpp"
#include "tests/moved_clock.hpp"
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

class VerbsEndpoint : public test::VerbsFixture {};

uintptr_t line_of(const void* word) { return reinterpret_cast<uintptr_t>(word) / 64; }

TEST_F(VerbsEndpoint, TheSendingSideWritesNoLineOfTheReceivingSide) {
    const Endpoint& ep = *core_.endpoint;
    for (const void* sending : {static_cast<const void*>(&ep.sends_given), static_cast<const void*>(&ep.sends_seen),
                                static_cast<const void*>(&ep.send_seen)}) {
        EXPECT_NE(line_of(sending), line_of(&ep.recv_seen));
        EXPECT_NE(line_of(sending), line_of(&ep.bad_receive));
    }
}

TEST_F(VerbsEndpoint, DestroyingAPinnedOneSleepsSoThatOthersCanRun) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    Endpoint* pinned = pin_endpoint(link_);
    ASSERT_NE(pinned, nullptr);
    link_.endpoint = nullptr;
    pinned->link = nullptr;
    std::atomic<pid_t> id{0};
    std::atomic<bool> closed{false};
    std::thread destroyer([&] {
        id = ::gettid();
        endpoint_destroy(pinned);
        closed = true;
    });
    while (id == 0) std::this_thread::yield();
    const int before = test::sleeps_of(id);
    // Yielding counts as none. Should it never sleep, this test has its time limit.
    while (test::sleeps_of(id) < before + 10) std::this_thread::yield();
    EXPECT_FALSE(closed);
    unpin_endpoint(*pinned);
    destroyer.join();
    ASSERT_EQ(endpoint_create(&nic_, EndpointArgs{&core_, &group_, &group_}, &core_.endpoint), Status::ok);
}

constexpr uint32_t kSentWhole = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;

TEST_F(VerbsEndpoint, TrafficIsFinishedWhenTheDeviceHasSaidSo) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    EXPECT_EQ(finish_traffic(core_), Status::ok);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    EXPECT_EQ(finish_traffic(core_), Status::not_done);
    complete(fake_.sends[0].wr.wr_id, IBV_WC_SUCCESS);
    EXPECT_EQ(finish_traffic(core_), Status::ok);
    EXPECT_EQ(d->CS.Status, kSentWhole);
}

TEST_F(VerbsEndpoint, NothingMoreIsExpectedOfAPeerThatIsLost) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(8));
    link_.lost = true;
    EXPECT_EQ(finish_traffic(core_), Status::ok);
    link_.lost = false;
    suspect(link_);
    EXPECT_EQ(finish_traffic(core_), Status::ok);
}

TEST_F(VerbsEndpoint, ADisconnectTakesWhatHasArrivedAndStopsTheQueuePair) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* received = descriptor(8);
    post_recv(received);
    VIP_DESCRIPTOR* waits = rdma(8, VIP_CONTROL_OP_RDMAWRITE, 5, 0x10000);
    post_send(waits);
    ASSERT_EQ(nic_.backlogs.load(), 1u);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    {
        const std::scoped_lock both(core_.recv.lock, core_.send.lock);
        disconnect(core_);
    }
    EXPECT_EQ(received->CS.Status, uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
    ASSERT_EQ(fake_.states.size(), 1u);
    EXPECT_EQ(fake_.states[0].qp_state, IBV_QPS_ERR);
    EXPECT_EQ(nic_.backlogs.load(), 0u);
    EXPECT_EQ(core_.endpoint->link, nullptr);
    nic_.leaving.clear();
}

TEST_F(VerbsEndpoint, APeerHasItsTimeToSayWhyCountedFromTheFirstSuspicion) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    tests::MovedClock clock;
    const int64_t until = clock.now() + 300'000'000;
    suspect(link_);
    EXPECT_EQ(link_.suspect_until, until);
    clock.move(std::chrono::milliseconds(1));
    suspect(link_);
    EXPECT_EQ(link_.suspect_until, until);
}

TEST_F(VerbsEndpoint, ASlotHasOneEndpoint) {
    Endpoint* second = nullptr;
    EXPECT_EQ(endpoint_create(&nic_, EndpointArgs{&core_, &group_, &group_}, &second), Status::out_of_resources);
}

}  // namespace
}  // namespace viaduct::verbs
