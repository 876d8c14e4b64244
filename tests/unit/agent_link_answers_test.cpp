// SPDX-License-Identifier: BSD-2-Clause
// Requests over AgentLink and their answers: deadlines, threads that share a link, requests that are given up.
#include "core/agent/link.hpp"

#include <atomic>
#include <thread>

#include "agent_link_testing.hpp"
#include "tests/eventually.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

TEST(AgentLinkTest, AwaitEndsAtItsDeadlineAndTheRequestStaysOpen) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    uint32_t ticket = 0;
    ASSERT_EQ(link.start(wait_request(1, "d"), &ticket), Status::ok);
    Mail answer;
    for (const int64_t ms : {0, 1, 7, 40}) {
        tests::RunningTime time;
        EXPECT_EQ(link.await(ticket, in_ms(ms), &answer), Status::not_done);
        EXPECT_GE(time.wall_ns(), ms * kMs);
        EXPECT_LT(time.running_ns(), ms * kMs + 200 * kMs) << "a loaded machine may be late, but not by much";
    }
    uint32_t request = 0;
    ASSERT_EQ(link.start(connect_request(1, own, "d"), &request), Status::ok);
    EXPECT_EQ(link.await(ticket, in_ms(5000), &answer), Status::ok);
    EXPECT_EQ(answer.type(), Type::kIncoming);
    link.abandon(request);
    EXPECT_EQ(link.await(request, in_ms(10), &answer), Status::invalid);
}

TEST(AgentLinkTest, AnAnswerToAnAbandonedRequestIsHandedToWhatUndoesIt) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    std::vector<Type> undone;
    const auto undo = [&](Mail& answer) {
        undone.push_back(answer.type());
        Mail other;  // with no lock held
        EXPECT_EQ(link.call(Mail(Type::kListNics), &other, in_ms(5000)), Status::ok);
    };
    uint32_t wait = 0, request = 0;
    Mail answer;
    // It comes later, and to a thread that waits for something else.
    ASSERT_EQ(link.start(wait_request(1, "d"), &wait), Status::ok);
    link.abandon(wait, undo);
    ASSERT_EQ(link.start(connect_request(1, own, "d"), &request), Status::ok);
    link.abandon(request);
    ASSERT_EQ(link.start(wait_request(1, "e"), &wait), Status::ok);
    const auto is_undone = [&] { return (void)link.await(wait, in_ms(5), &answer), !undone.empty(); };
    EXPECT_TRUE(eventually("the late answer is undone", is_undone));
    // It is here, and no thread has taken it.
    ASSERT_EQ(link.start(connect_request(1, own, "e"), &request), Status::ok);
    link.abandon(request);
    EXPECT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(5000)), Status::ok)
        << "and the other one is read";
    link.abandon(wait, undo);
    EXPECT_EQ(undone, (std::vector{Type::kIncoming, Type::kIncoming}));
}

TEST(AgentLinkTest, ThreadsThatWaitReadForEachOther) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    constexpr int kThreads = 8, kRounds = 60;
    std::atomic<int> met{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kRounds; ++i) {
                const std::string d = "t" + std::to_string(t);
                Mail answer;
                if (t % 2 == 0) {
                    uint32_t wait = 0;
                    if (link.start(wait_request(1, d), &wait) != Status::ok) return;
                    if (link.await(wait, in_ms(10'000), &answer) != Status::ok ||
                        answer.type() != Type::kIncoming)
                        return;
                    kagent::Incoming in;
                    if (!answer.get(&in)) return;
                    kagent::IncomingRef ref{1, in.incoming};
                    if (link.call(Mail::of(Type::kConnReject, ref), &answer, in_ms(10'000)) != Status::ok)
                        return;
                } else {
                    const std::string other = "t" + std::to_string(t - 1);
                    Status s = Status::no_match;
                    while (s == Status::no_match)
                        s = link.call(connect_request(1, own, other, 10'000), &answer, in_ms(12'000));
                    if (s != Status::rejected) return;
                }
                ++met;
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(met.load(), kThreads * kRounds);
}

TEST(AgentLinkTest, PumpingByAnotherThreadLosesNoWakeUp) {
    Place place;
    AgentLink link;
    open_nic(link, 1);
    std::atomic<bool> stop{false};
    std::thread pumper([&] {
        while (!stop) {
            pollfd p{link.socket(), POLLIN, 0};
            ::poll(&p, 1, 1);
            link.pump();
        }
    });
    std::vector<std::thread> callers;
    std::atomic<int> answered{0};
    for (int t = 0; t < 3; ++t) {
        callers.emplace_back([&] {
            kagent::NameText name;
            std::strcpy(name.name, "fake1");
            for (int i = 0; i < 1500; ++i) {
                Mail answer;
                if (link.call(Mail::of(Type::kResolveName, name), &answer, in_ms(5000)) == Status::ok)
                    ++answered;
            }
        });
    }
    for (auto& c : callers) c.join();
    stop = true;
    pumper.join();
    EXPECT_EQ(answered.load(), 3 * 1500);
}

TEST(AgentLinkTest, ListsArriveWhole) {
    Place place;
    AgentLink link;
    Mail answer;
    ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(5000)), Status::ok);  // leaves the rest alone
    uint32_t ticket = 0;
    ASSERT_EQ(link.start(Mail(Type::kListNics), &ticket), Status::ok);
    int entries = 0;
    for (bool more = true; more; ++entries) {
        ASSERT_EQ(link.await(ticket, in_ms(5000), &answer), Status::ok) << "after " << entries;
        kagent::NicEntry nic;
        kagent::RejectionEntry rejection;
        more = answer.get(&nic) ? nic.more != 0 : answer.get(&rejection) && rejection.more != 0;
    }
    EXPECT_GT(entries, 1) << "no list, so this shows nothing";
    EXPECT_EQ(link.await(ticket, in_ms(100), &answer), Status::invalid) << "the list is over";
}

}  // namespace
}  // namespace viaduct
