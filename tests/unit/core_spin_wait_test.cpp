// SPDX-License-Identifier: BSD-2-Clause
// How VIPL waits, the crowd score and deadlines.
#include "core/wait/spin_wait.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "core/clock/clock.hpp"
#include "core/process/allowed_processors.hpp"
#include "core/wait/crowd_score.hpp"
#include "tests/eventually.hpp"
#include "tests/moved_clock.hpp"

namespace viaduct {
namespace {

// Affinity as it was, however a test ends.
class OneProcessor {
public:
    OneProcessor() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &before_)) continue;
            CPU_SET(cpu, &one);
            break;
        }
        ::sched_setaffinity(0, sizeof one, &one);
    }
    ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_;
};

TEST(Waiting, KnowsHowManyProcessorsAreAllowed) {
    std::thread([] {
        const OneProcessor pinned;
        EXPECT_EQ(allowed_processor_count(), 1);
    }).join();
    EXPECT_GE(allowed_processor_count(), 1);
}

TEST(Waiting, SleepsAtOnceWhenToldSo) {
    SpinWait spin(0);
    EXPECT_FALSE(spin.step());
}

TEST(Waiting, EndsAfterAboutTheTimeGiven) {
    SpinWait spin(2'000'000);
    tests::RunningTime time;
    while (spin.step()) {
    }
    EXPECT_LT(time.running_ns(), 1'000'000'000);
}

// Processor time of this process: what others make of the processor meanwhile does not count.
int64_t used_ns() { return int64_t{std::clock()} * (1'000'000'000 / CLOCKS_PER_SEC); }

// Two threads that wait for each other on one processor: each turn is one yield, not one tick of the
// scheduler.
TEST(Waiting, HandsTheProcessorOver) {
    constexpr int kTurns = 2000;
    std::atomic<int> turn{0};
    std::atomic<bool> crowd{false};
    const auto play = [&](int parity) {
        for (int i = parity; i < kTurns; i += 2) {
            if (crowded()) crowd.store(true, std::memory_order_relaxed);
            while (turn.load(std::memory_order_acquire) != i) {
                SpinWait spin(1'000'000'000);
                while (turn.load(std::memory_order_acquire) != i && spin.step()) {
                }
                // It would sleep now, as it does beside other programs that compute.
                if (turn.load(std::memory_order_acquire) != i) ::sched_yield();
            }
            turn.store(i + 1, std::memory_order_release);
        }
    };
    const OneProcessor pinned;
    const int64_t before = used_ns();
    std::thread other(play, 1);  // inherits the one processor
    play(0);
    other.join();
    EXPECT_LT(used_ns() - before, int64_t{kTurns} * 500'000) << "a scheduler tick each would be milliseconds";
    EXPECT_TRUE(crowd.load()) << "it was not noticed that other threads need the processor";
}

// A yield gives it all of a time slice. A sleeping thread gets the processor when it is woken.
TEST(Waiting, SleepsAtOnceBesideAComputingThread) {
    constexpr int kWaits = 20, kYieldsOfACrowd = 64;
    std::atomic<bool> stop{false};
    const OneProcessor pinned;
    std::thread computes([&] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
    });
    for (int i = 0; i < 8 && !crowded(); ++i) yield_processor();
    int looks = 0;
    for (int i = 0; i < kWaits; ++i) {
        SpinWait spin(1'000'000'000);
        while (spin.step()) ++looks;
    }
    stop.store(true, std::memory_order_relaxed);
    computes.join();
    EXPECT_LT(looks, kWaits * kYieldsOfACrowd / 4);
}

TEST(CrowdScoreTest, EachUsedYieldAddsTwoAndEachUnusedOneTakesOne) {
    constexpr int64_t kWasted = 350, kUsed = 2'000;
    CrowdScore score;
    for (int i = 0; i < 100; ++i) score.yielded(kWasted);
    EXPECT_FALSE(score.some());
    score.yielded(kUsed);
    EXPECT_TRUE(score.some()) << "enough where only one processor is allowed";
    EXPECT_FALSE(score.many());
    score.yielded(kUsed);
    EXPECT_TRUE(score.many());
    score.yielded(kWasted);
    EXPECT_FALSE(score.many());
    score.yielded(kWasted);
    EXPECT_TRUE(score.some());
    score.yielded(kWasted);
    EXPECT_FALSE(score.some());
    for (int i = 0; i < 100; ++i) score.yielded(kUsed);
    for (int i = 0; i < 4; ++i) score.yielded(kWasted);
    EXPECT_TRUE(score.many()) << "at most 8 are counted, and 4 are left";
    score.yielded(kWasted);
    EXPECT_FALSE(score.many());
}

TEST(CrowdScoreTest, YieldsOfATimeSliceSayThatOthersCompute) {
    constexpr int64_t kSlice = 3'000'000, kShort = 20'000, kMs = 1'000'000;
    CrowdScore score;
    int64_t now = 1'000 * kMs;
    EXPECT_FALSE(score.computes(now));
    for (int i = 0; i < 100; ++i) score.yielded(kShort, now);
    EXPECT_FALSE(score.computes(now)) << "dozens that look for messages";
    for (int i = 0; i < 2; ++i) score.yielded(kSlice, now);
    EXPECT_TRUE(score.computes(now));
    score.yielded(kShort, now);
    EXPECT_TRUE(score.computes(now)) << "one that was not used up";
    EXPECT_FALSE(score.computes(now + 60 * kMs)) << "one yield asks again";
    int yields = 0;
    for (const int64_t end = now + 10'000 * kMs; now < end; now += kMs) {
        if (score.computes(now)) continue;
        score.yielded(kSlice, now);
        ++yields;
    }
    EXPECT_LT(yields, 20) << "and more and more seldom";
    now += 2'000 * kMs;
    for (int i = 0; i < 30; ++i) score.yielded(kShort, now);
    EXPECT_FALSE(score.computes(now)) << "they have ended";
    score.yielded(kSlice, now);
    EXPECT_FALSE(score.computes(now)) << "one alone says nothing";
}

TEST(CrowdScoreTest, IsAgainstTheQuickestYieldThatWasSeen) {
    CrowdScore score;
    score.yielded(100);
    score.yielded(401);
    EXPECT_TRUE(score.some());
    CrowdScore slow;
    slow.yielded(401);
    EXPECT_FALSE(slow.some());
}

TEST(CrowdScoreTest, SwitchedOffPollsDoNotGiveWay) {
    switch_giving_way(false);
    std::atomic<bool> stop{false};
    const OneProcessor pinned;
    std::thread other([&] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
    });
    const int64_t end = used_ns() + 50'000'000;
    bool crowd = false;
    while (used_ns() < end) {
        between_polls();
        crowd |= crowd_hint.load(std::memory_order_relaxed);
    }
    stop.store(true, std::memory_order_relaxed);
    other.join();
    switch_giving_way(true);
    EXPECT_FALSE(crowd) << "a yield has let the other thread run";
}

TEST(Clock, TurnsTimeoutsIntoDeadlines) {
    EXPECT_EQ(deadline_from_timeout(0xFFFFFFFF), kNever);
    EXPECT_EQ(deadline_from_timeout(UINT64_MAX), kNever);
    tests::MovedClock clock;
    const Deadline later = deadline_from_timeout(1000);
    EXPECT_EQ(later, clock.now() + 1'000'000'000);
    EXPECT_EQ(remaining_ns(kNever), -1);
    EXPECT_EQ(remaining_ns(clock.now() - 1), 0);
    clock.move(std::chrono::milliseconds(999));
    EXPECT_EQ(remaining_ns(later), 1'000'000);
    clock.move(std::chrono::seconds(2));
    EXPECT_EQ(remaining_ns(later), 0);
    EXPECT_LT(deadline_from_timeout(0xFFFFFFFE), kNever);
}

}  // namespace
}  // namespace viaduct
