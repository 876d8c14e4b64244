// SPDX-License-Identifier: BSD-2-Clause
// AgentLink when an agent dies or leaves, and when the program forks.
#include "core/agent/link.hpp"

#include <atomic>
#include <thread>

#include "agent_link_testing.hpp"
#include "tests/slowness.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

TEST(AgentLinkTest, DeathOfTheAgentEndsEveryOpenRequestAtOnce) {
    Place place;
    AgentLink link;
    open_nic(link, 1);
    std::vector<std::thread> waiters;
    std::atomic<int> started{0}, broken{0};
    for (int i = 0; i < 4; ++i) {
        waiters.emplace_back([&, i] {
            uint32_t ticket = 0;
            Mail answer;
            if (link.start(wait_request(1, "w" + std::to_string(i)), &ticket) != Status::ok) return;
            ++started;
            if (link.await(ticket, kNever, &answer) == Status::broken) ++broken;
        });
    }
    for (int64_t end = in_ms(10'000); started.load() < 4 && now_ns() < end;) nap_ms(1);
    ASSERT_EQ(started.load(), 4);
    nap_ms(20);
    const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
    const int64_t begun = now_ns();
    ::kill(agent, SIGKILL);
    for (auto& w : waiters) w.join();
    EXPECT_EQ(broken.load(), 4);
    const int64_t took = now_ns() - begun;
    EXPECT_LT(took, tests::slowed(1000 * kMs, took));
}

TEST(AgentLinkTest, KilledAgentIsStartedAgainAndRunsReattachFirst) {
    Place place;
    AgentLink link;
    open_nic(link, 77);
    int reattached = 0;
    link.on_reattach([&](AgentLink& l) {
        ++reattached;
        kagent::OpenNic o;
        std::strcpy(o.device, "fake0");
        o.context_id = 77;
        o.reattach = 1;
        o.held[kagent::kLeaseVis] = 5;
        Mail answer;
        return l.exchange_now(Mail::of(Type::kOpenNic, o), &answer);
    });
    for (int round = 1; round <= 3; ++round) {
        const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
        ::kill(agent, SIGKILL);
        Mail answer;
        kagent::Lease lease;
        lease.context_id = 77;
        lease.kind = kagent::kLeaseVis;
        lease.amount = 1;
        EXPECT_EQ(link.call(Mail::of(Type::kLease, lease), &answer, in_ms(8000)), Status::ok)
            << link.last_error();
        EXPECT_EQ(reattached, round);
        EXPECT_NE(static_cast<pid_t>(link.welcome().agent_pid), agent);
        EXPECT_EQ(link.epoch(), static_cast<uint64_t>(round + 1));
    }
}

TEST(AgentLinkTest, CallsOnOneAnswerSurviveAnAgentThatKeepsDying) {
    Place place;
    AgentLink link;
    std::atomic<bool> stop{false};
    std::thread killer([&] {
        for (int killed = 0; killed < 5;) {
            nap_ms(60);
            const pid_t p = place.agent_pid();  // 0: none is up yet
            if (p != 0 && ::kill(p, SIGKILL) == 0) ++killed;
        }
        stop = true;
    });
    int calls = 0;
    do {
        Mail answer;
        ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(8000)), Status::ok) << link.last_error();
        ++calls;
    } while (!stop);
    killer.join();
    EXPECT_GT(calls, 0);
}

TEST(AgentLinkTest, AShutdownIsAnEventAndTheNextCallMeetsTheNextAgent) {
    Place place;
    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok);
    std::atomic<int> leavings{0};
    link.on_event([&](const Mail& m, uint64_t) { leavings += m.type() == Type::kLeaving; });
    place.shut_down();
    EXPECT_TRUE(eventually([&] {
        link.pump();
        return leavings == 1 && link.socket() < 0;
    }));
    Mail answer;
    EXPECT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(8000)), Status::ok) << link.last_error();
    EXPECT_EQ(link.epoch(), 2u);
}

TEST(AgentLinkTest, ANoticeThatIsHandledLaterIsStillOfItsConnection) {
    Place place;
    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok);
    uint64_t came_over = 0;
    link.on_event([&](const Mail& m, uint64_t epoch) {
        if (m.type() == Type::kLeaving) came_over = epoch;
    });
    place.shut_down();
    Mail answer;
    EXPECT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(8000)), Status::ok) << link.last_error();
    link.pump();
    EXPECT_EQ(link.epoch(), 2u);
    EXPECT_EQ(came_over, 1u);
}

TEST(AgentLinkTest, ForkedChildHasAConnectionOfItsOwn) {
    Place place("1000");
    AgentLink link;
    open_nic(link, 1);
    const pid_t child = ::fork();
    if (child == 0) {
        link.reset_after_fork();
        Mail answer;
        const bool ok = link.socket() < 0 && link.call(open_request(2), &answer, in_ms(5000)) == Status::ok;
        ::_exit(ok ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    kagent::ContextRef ref{1};
    Mail answer;
    EXPECT_EQ(link.call(Mail::of(Type::kCloseNic, ref), &answer, in_ms(5000)), Status::ok)
        << "the parent's is untouched";
    EXPECT_EQ(link.epoch(), 1u);
}

TEST(AgentLinkTest, AgentNoticesADeadClientEvenIfAChildHoldsItsSocket) {
    Place place("1000");
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t client = ::fork();
    if (client == 0) {
        AgentLink link;
        open_nic(link, 4711);
        const pid_t holder = ::fork();
        if (holder == 0) {  // a child that never calls us again and keeps everything it inherited
            ::close(ready[0]);
            ::alarm(60);  // should the test not end it
            for (;;) ::pause();
        }
        (void)!::write(ready[1], &holder, sizeof holder);
        nap_ms(10'000);
        ::_exit(0);
    }
    pid_t holder = 0;
    ASSERT_EQ(::read(ready[0], &holder, sizeof holder), static_cast<ssize_t>(sizeof holder));
    ::kill(client, SIGKILL);
    ::waitpid(client, nullptr, 0);
    AgentLink link;
    // Its context id is free again as soon as it is cleaned up.
    EXPECT_TRUE(eventually(
        [&] {
            Mail answer;
            return link.call(open_request(4711), &answer, in_ms(2000)) == Status::ok;
        },
        1000));
    ::kill(holder, SIGKILL);
    ::close(ready[0]);
    ::close(ready[1]);
}

}  // namespace
}  // namespace viaduct
