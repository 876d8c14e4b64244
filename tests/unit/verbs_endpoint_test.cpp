// SPDX-License-Identifier: BSD-2-Clause
// What an endpoint costs others: the lines of the cache it shares, and the wait for those who still use it.
#include "providers/verbs/endpoint.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

class VerbsEndpoint : public test::VerbsFixture {};

uintptr_t line_of(const void* word) { return reinterpret_cast<uintptr_t>(word) / 64; }

TEST_F(VerbsEndpoint, TheSendingSideWritesNoLineOfTheReceivingSide) {
    const Endpoint& ep = *core_.endpoint;
    for (const void* sending :
         {static_cast<const void*>(&ep.sends_given), static_cast<const void*>(&ep.sends_heard),
          static_cast<const void*>(&ep.send_seen)}) {
        EXPECT_NE(line_of(sending), line_of(&ep.recv_seen));
        EXPECT_NE(line_of(sending), line_of(&ep.bad_receive));
    }
}

TEST_F(VerbsEndpoint, WhoDestroysAPinnedOneSleepsSoThatOthersCanRun) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    Endpoint* pinned = pin_endpoint(link_);
    ASSERT_NE(pinned, nullptr);
    link_.endpoint = nullptr;
    pinned->link = nullptr;
    std::atomic<pid_t> id{0};
    std::atomic<bool> gone{false};
    std::thread destroyer([&] {
        id = ::gettid();
        endpoint_destroy(pinned);
        gone = true;
    });
    while (id == 0) std::this_thread::yield();
    const int before = test::sleeps_of(id);
    // Yielding counts as none. Should it never sleep, this test has its time limit.
    while (test::sleeps_of(id) < before + 10) std::this_thread::yield();
    EXPECT_FALSE(gone);
    unpin_endpoint(*pinned);
    destroyer.join();
    ASSERT_EQ(endpoint_create(&nic_, EndpointArgs{&core_, &group_, &group_}, &core_.endpoint), Status::ok);
}

}  // namespace
}  // namespace viaduct::verbs
