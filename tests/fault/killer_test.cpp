// SPDX-License-Identifier: BSD-2-Clause
// viaduct_fault --gtest_filter=Killer.* [--rounds N] [--seed S]: in every round a peer under load, the agent,
// or both die (-9) at a random moment. Four rounds run at once; after each group everything that was held is
// counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <mutex>
#include <random>
#include <shared_mutex>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

using Microseconds = std::chrono::microseconds;

constexpr int kAtOnce = 4;
constexpr Microseconds kLongestLoad{25'000};

enum class Dies { kPeer, kAgent, kBoth };
constexpr const char* kDies[] = {"the peer", "the agent", "agent and peer"};

/// What a round does; made of one number, so that a round that failed can be named.
struct Plan {
    explicit Plan(std::uint64_t number) {
        std::mt19937_64 random(number);
        const auto pick = [&](std::uint64_t below) { return random() % below; };
        constexpr VIP_RELIABILITY_LEVEL kLevels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};
        const std::uint64_t fate = pick(20);
        dies = fate < 14 ? Dies::kPeer : fate < 17 ? Dies::kAgent : Dies::kBoth;
        level = kLevels[pick(3)];
        way = static_cast<Way>(pick(3));
        load = pick(6);
        constexpr std::uint32_t kSizes[] = {8, 48, 200, 3000, 20'000, 200'000};
        bytes = 1 + static_cast<std::uint32_t>(pick(kSizes[pick(6)]));
        until_kill = Microseconds(pick(static_cast<std::uint64_t>(kLongestLoad.count())));
    }
    std::string text() const {
        return std::string(kDies[static_cast<int>(dies)]) + ", level " + std::to_string(level) + ", way " +
               std::to_string(static_cast<int>(way)) + ", load " + std::to_string(load) + ", " +
               std::to_string(bytes) + " bytes, after " + std::to_string(until_kill.count()) + " us";
    }

    Dies dies;
    VIP_RELIABILITY_LEVEL level;
    Way way;
    std::uint64_t load;
    std::uint32_t bytes;
    Microseconds until_kill;
};

/// Traffic with a victim: one step of it at a time.
class Load {
public:
    virtual ~Load() = default;
    /// False once the connection has ended.
    virtual bool step() = 0;
    virtual bool damaged() const { return false; }
};

class InStream final : public Load {
public:
    explicit InStream(Meeting& m, std::uint32_t bytes) : stream_(*m.end, bytes) {
        stream_.begin_receiving();
        m.child->go();
    }
    bool step() override { return stream_.step_receiver(); }
    bool damaged() const override { return stream_.damaged(); }

private:
    Stream stream_;
};

class OutStream final : public Load {
public:
    explicit OutStream(Meeting& m, std::uint32_t bytes) : stream_(*m.end, bytes) { stream_.begin_sending(); }
    bool step() override { return stream_.step_sender(); }
    bool damaged() const override { return stream_.damaged(); }

private:
    Stream stream_;
};

class BothWays final : public Load {
public:
    explicit BothWays(Meeting& m, std::uint32_t bytes) : volley_(*m.end, bytes) {
        volley_.begin();
        m.child->go();
        volley_.serve();
    }
    bool step() override { return volley_.step(); }
    bool damaged() const override { return volley_.damaged(); }

private:
    Volley volley_;
};

/// The victim writes into our memory, or reads it, by RDMA.
class ItsRdma final : public Load {
public:
    ItsRdma(Meeting& m, std::uint32_t bytes) : end_(*m.end) {
        char* memory = end_.buffer(bytes);
        send_window(end_, {reinterpret_cast<std::uint64_t>(memory), end_.region, bytes});
    }
    bool step() override {
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN code = VipRecvDone(end_.vi, &done);
        return code == VIP_NOT_DONE || code == VIP_SUCCESS;
    }

private:
    End& end_;
};

/// Nothing moves; the victim sleeps in a call.
class Stillness final : public Load {
public:
    explicit Stillness(Meeting& m) : end_(*m.end) {}
    bool step() override {
        VIP_DESCRIPTOR* done = nullptr;
        return VipRecvDone(end_.vi, &done) == VIP_NOT_DONE;
    }

private:
    End& end_;
};

struct Loaded {
    std::unique_ptr<Meeting> meeting;
    std::unique_ptr<Load> load;
};

Loaded begin(const Plan& plan) {
    EndOptions chosen;
    chosen.level = plan.level;
    chosen.memory = std::max(Stream::memory_for(plan.bytes), Volley::memory_for(plan.bytes));
    Invitation invitation;
    invitation.way = plan.way;
    invitation.memory = chosen.memory;
    const auto meet = [&](const char* role, int receives, const std::string& more) {
        invitation.receives = receives;
        if (!more.empty()) invitation.more = {more};
        return std::make_unique<Meeting>(role, chosen, invitation);
    };
    const std::string size = std::to_string(plan.bytes);
    Loaded made;
    switch (plan.load) {
        case 0:
            made.meeting = meet("stream", 0, size);
            made.load = std::make_unique<InStream>(*made.meeting, plan.bytes);
            break;
        case 1:
            made.meeting = meet("sink", 0, size);
            made.load = std::make_unique<OutStream>(*made.meeting, plan.bytes);
            break;
        case 2:
            made.meeting = meet("initiator", kReceives, "write");
            made.load = std::make_unique<ItsRdma>(*made.meeting, plan.bytes);
            break;
        case 3:
            made.meeting = meet("sleep", kReceives, "");
            made.load = std::make_unique<Stillness>(*made.meeting);
            break;
        default:
            made.meeting = meet("volley", 0, size);
            made.load = std::make_unique<BothWays>(*made.meeting, plan.bytes);
            break;
    }
    return made;
}

/// Everything left on a queue comes back in error, and then it is empty.
void expect_emptied(VIP_VI_HANDLE vi, VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR**),
                    const char* queue) {
    constexpr VIP_UINT32 kExplained = VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR;
    for (int i = 0; i < 4096; ++i) {
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN code = take(vi, &done);
        if (code == VIP_DESCRIPTOR_ERROR && done == nullptr) return;
        ASSERT_NE(VIP_NOT_DONE, code) << "a descriptor of the " << queue << " queue was lost";
        ASSERT_NE(nullptr, done) << queue << " queue: " << code;
        if (code == VIP_DESCRIPTOR_ERROR) {
            EXPECT_NE(0u, done->CS.Status & kExplained)
                << queue << " queue, status " << std::hex << done->CS.Status;
        }
    }
    ADD_FAILURE() << "the " << queue << " queue never ends";
}

struct Totals {
    std::atomic<int> peers{0}, agents{0};
    std::atomic<std::int64_t> slowest_ms{0};
};

/// The agent dies while no process is in the middle of connecting: what an attempt may become then has tests of
/// its own (AgentKilledOften).
std::shared_mutex control;

void kill_agent_now(Totals& totals) {
    const std::unique_lock alone(control);
    if (kill_agent()) ++totals.agents;  // another round may have been quicker
}

void connect_anew() {
    const std::shared_lock together(control);
    expect_new_connections_work();
}

void play(const Plan& plan, Totals& totals) {
    Loaded made = [&] {
        const std::shared_lock together(control);
        return begin(plan);
    }();
    Meeting& meeting = *made.meeting;
    Load& load = *made.load;
    const auto run_for = [&](Clock::time_point end) {
        while (Clock::now() < end) ASSERT_TRUE(load.step()) << "it ended before any process died";
    };
    run_for(Clock::now() + plan.until_kill);
    if (plan.dies != Dies::kPeer) kill_agent_now(totals);
    if (plan.dies == Dies::kAgent) {  // connections go on, and new ones are made
        run_for(Clock::now() + std::chrono::milliseconds(10));
        connect_anew();
        run_for(Clock::now() + std::chrono::milliseconds(5));
    }
    meeting.kill();
    ++totals.peers;
    EXPECT_TRUE(eventually([&] { return !load.step(); }, kOneSecond)) << "the traffic does not end";
    EXPECT_FALSE(load.damaged());
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    EXPECT_TRUE(meeting.end->errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
    const std::int64_t took = conformance::since(meeting.killed).count();
    EXPECT_TRUE(conformance::in_time(meeting.killed, kOneSecondMeasured));
    for (std::int64_t slowest = totals.slowest_ms; took > slowest;)
        if (totals.slowest_ms.compare_exchange_weak(slowest, took)) break;
    expect_emptied(meeting.end->vi, VipRecvDone, "receive");
    expect_emptied(meeting.end->vi, VipSendDone, "send");
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(meeting.end->vi));
    EXPECT_EQ(VIP_STATE_IDLE, End::state_of(meeting.end->vi));
    EXPECT_EQ(1u, meeting.end->errors.size()) << "one error, told once";
    connect_anew();
}

/// A group of rounds at once; what they throw is a failure of theirs.
void play_group(std::uint64_t first, int count, Totals& totals) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&totals, number = first + static_cast<std::uint64_t>(i)] {
            const Plan plan(number);
            SCOPED_TRACE("round --rounds 1 --seed " + std::to_string(number) + ": " + plan.text());
            try {
                play(plan, totals);
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(Killer, AtAnyMomentUnderLoad) {
    const int rounds = killer_options().rounds;
    const End keeps_the_agent;
    Totals totals;
    play_group(killer_options().seed + 1'000'000, kAtOnce, totals);  // whatever is made once is there now
    const Census before = Census::settled();
    const auto begun = Clock::now();
    for (int done = 0; done < rounds && !HasFailure();) {
        const int count = std::min(kAtOnce, rounds - done);
        play_group(killer_options().seed + static_cast<std::uint64_t>(done), count, totals);
        done += count;
        Census now;
        EXPECT_TRUE(eventually([&] { return (now = Census::take()).within(before); }, Millis(5000)))
            << "left behind after round " << done << "\nbefore: " << before.text()
            << "\nafter:  " << now.text();
    }
    std::cout << rounds << " rounds from seed " << killer_options().seed << ": " << totals.peers
              << " peers and " << totals.agents << " agents killed, the slowest news came after "
              << totals.slowest_ms << " ms; " << conformance::since(begun).count() / 1000 << " s"
              << std::endl;
}

}  // namespace
}  // namespace viaduct::fault
