// SPDX-License-Identifier: BSD-2-Clause
// AgentLink when an agent dies or leaves, and when the program forks.
#include "core/agent/link.hpp"

#include <atomic>
#include <thread>

#include "agent_link_testing.hpp"
#include "fake_provider/fake_control.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

TEST(AgentLinkTest, DeathOfTheAgentEndsEveryOpenRequestAtOnce) {
    Place place;
    AgentLink link;
    open_nic(link, 1);
    std::vector<std::thread> waiters;
    std::atomic<int> started{0}, broken{0};
    tests::SleepMark waits[4];
    for (int i = 0; i < 4; ++i) {
        waiters.emplace_back([&, i] {
            uint32_t ticket = 0;
            Mail answer;
            if (link.start(wait_request(1, "w" + std::to_string(i)), &ticket) != Status::ok) return;
            ++started;
            waits[i].set();
            if (link.await(ticket, kNever, &answer) == Status::broken) ++broken;
        });
    }
    EXPECT_TRUE(eventually("four requests are sent", [&] { return started.load() == 4; }));
    for (const auto& one : waits)
        EXPECT_TRUE(eventually("the thread waits for its answer", [&] { return one.has_slept(); }));
    const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
    tests::RunningTime time;
    ::kill(agent, SIGKILL);
    for (auto& w : waiters) w.join();
    EXPECT_EQ(broken.load(), 4);
    EXPECT_LT(time.running_ns(), 1000 * kMs);
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
        o.address = fake::nic("fake", 0).address;
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
        EXPECT_EQ(link.call(Mail::of(Type::kLease, lease), &answer, in_ms(8000)), Status::ok) << link.last_error();
        EXPECT_EQ(reattached, round);
        EXPECT_NE(static_cast<pid_t>(link.welcome().agent_pid), agent);
        EXPECT_EQ(link.epoch(), static_cast<uint64_t>(round + 1));
    }
}

TEST(AgentLinkTest, CallsOnOneAnswerSurviveAnAgentThatKeepsDying) {
    Place place;
    AgentLink link;
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0};
    std::thread killer([&] {
        for (int killed = 0; killed < 5;) {
            const int then = calls;
            EXPECT_TRUE(eventually("calls are answered", [&] { return calls >= then + 20; }));
            const pid_t p = place.agent_pid();  // 0: none is up yet
            if (p != 0 && ::kill(p, SIGKILL) == 0) ++killed;
        }
        stop = true;
    });
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
    EXPECT_TRUE(eventually("the link takes the notice and loses its socket", [&] {
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
        for (;;) ::pause();
    }
    pid_t holder = 0;
    ASSERT_EQ(::read(ready[0], &holder, sizeof holder), static_cast<ssize_t>(sizeof holder));
    tests::RunningTime time(kAnyProcess);
    ::kill(client, SIGKILL);
    ::waitpid(client, nullptr, 0);
    AgentLink link;
    // Its context id is free again as soon as it is cleaned up.
    EXPECT_TRUE(eventually("the agent frees the context of the dead client", [&] {
        Mail answer;
        return link.call(open_request(4711), &answer, in_ms(2000)) == Status::ok;
    }));
    EXPECT_LT(time.running_ns(), 1000 * kMs);
    ::kill(holder, SIGKILL);
    ::close(ready[0]);
    ::close(ready[1]);
}

}  // namespace
}  // namespace viaduct
