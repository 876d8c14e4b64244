// SPDX-License-Identifier: BSD-2-Clause
// The biased lock: exclusion through every change of bias, and no waiting where none is allowed.
#include "core/sync/biased_lock.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/sync/futex.hpp"
#include "core/sync/pause.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct {
namespace {

void in_other_thread(const std::function<void()>& body) { std::thread(body).join(); }

// A counter that two threads inside at once would damage.
struct Guarded {
    BiasedLock lock;
    uint64_t count = 0;
    std::atomic<int> inside{0};
    std::atomic<int> intrusions{0};

    void work() {
        if (inside.fetch_add(1, std::memory_order_relaxed) != 0) ++intrusions;
        ++count;
        inside.fetch_sub(1, std::memory_order_relaxed);
    }
    void locked_work() {
        lock.lock();
        work();
        lock.unlock();
    }
};

TEST(BiasedLock, ExcludesAThreadThatComesLater) {
    BiasedLock lock;
    std::atomic<bool> entered{false};
    tests::SleepMark waits;
    lock.lock();
    std::thread other([&] {
        waits.set();
        lock.lock();
        entered = true;
        lock.unlock();
    });
    EXPECT_TRUE(tests::eventually("the other thread sleeps", [&] { return entered || waits.has_slept(); }));
    EXPECT_FALSE(entered);
    lock.unlock();
    other.join();
    EXPECT_TRUE(entered);
    lock.lock();
    lock.unlock();
}

TEST(BiasedLock, TryLockNeverWaitsForTheOwner) {
    BiasedLock lock;
    lock.lock();  // biased to us
    bool got = true;
    in_other_thread([&] { got = lock.try_lock(); });
    EXPECT_FALSE(got);
    in_other_thread([&] { got = lock.try_lock(); });
    EXPECT_FALSE(got) << "the bias is revoked by now, but we are still inside";
    EXPECT_FALSE(lock.try_lock()) << "not recursive";
    lock.unlock();
    in_other_thread([&] {
        got = lock.try_lock();
        if (got) lock.unlock();
    });
    EXPECT_TRUE(got);
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
}

TEST(BiasedLock, AWaitAfterAFailedTryGetsIn) {
    BiasedLock lock;
    lock.lock();
    in_other_thread([&] { EXPECT_FALSE(lock.try_lock()); });
    std::atomic<bool> entered{false};
    tests::SleepMark waits;
    std::thread other([&] {
        waits.set();
        lock.lock();
        entered = true;
        lock.unlock();
    });
    EXPECT_TRUE(tests::eventually("the other thread sleeps", [&] { return entered || waits.has_slept(); }));
    EXPECT_FALSE(entered);
    lock.unlock();
    other.join();
}

TEST(BiasedLock, GoesBackToItsFirstThreadAndAwayAgain) {
    Guarded g;
    g.locked_work();
    for (int round = 0; round < 20; ++round) {
        in_other_thread([&] { g.locked_work(); });
        for (int i = 0; i < 600; ++i) g.locked_work();  // long enough to get the bias back
        // Held through the moment another thread comes.
        g.lock.lock();
        bool got = true;
        in_other_thread([&] { got = g.lock.try_lock(); });
        EXPECT_FALSE(got);
        g.work();
        g.lock.unlock();
    }
    EXPECT_EQ(g.intrusions, 0);
    EXPECT_EQ(g.count, 1u + 20 * 602);
}

TEST(BiasedLock, IsAsNewAfterReset) {
    Guarded g;
    g.locked_work();
    in_other_thread([&] { g.locked_work(); });
    g.lock.reset();
    in_other_thread([&] {
        for (int i = 0; i < 10; ++i) g.locked_work();
    });
    g.locked_work();
    EXPECT_EQ(g.count, 13u);
}

TEST(BiasedLock, WorksInAForkedChild) {
    Guarded g;
    g.locked_work();
    const pid_t child = ::fork();
    if (child == 0) {
        for (int i = 0; i < 10; ++i) g.locked_work();
        ::_exit(g.count == 11 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// One thread that comes all the time, others that come in different rhythms: every mixture of first bias,
// revocation, failed tries and giving back.
class BiasedLockStress : public ::testing::TestWithParam<int> {};

TEST_P(BiasedLockStress, NoThreadIsEverInsideWithAnother) {
    Guarded g;
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.reserve(2);
    std::atomic<uint64_t> expected{0}, missed{0}, rounds_of_first{0}, turns[2]{};
    const int rhythm = GetParam();
    // A thread that comes seldom lets the first one lock so many times in between. It gets its bias back after 256.
    const uint64_t gap = rhythm > 20 ? static_cast<uint64_t>(rhythm) * 10 : 0;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            uint64_t mine = 0;
            for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
                if (i % 3 == 0) {
                    if (g.lock.try_lock()) {
                        g.work();
                        g.lock.unlock();
                        ++mine;
                    } else {
                        ++missed;
                    }
                } else {
                    g.locked_work();
                    ++mine;
                }
                for (int pauses = (rhythm + t) * 40; pauses > 0; --pauses) cpu_pause();
                const uint64_t comes_again_at = rounds_of_first.load(std::memory_order_relaxed) + gap;
                while (rounds_of_first.load(std::memory_order_relaxed) < comes_again_at && !stop) ::sched_yield();
                turns[t].store(i, std::memory_order_relaxed);
            }
            expected += mine;
        });
    }
    uint64_t mine = 0;
    constexpr uint64_t kTurns = 300, kLeast = 50'000;
    while (mine < kLeast || turns[0] < kTurns || turns[1] < kTurns) {
        for (int i = 0; i < 500; ++i) {
            g.locked_work();
            rounds_of_first.store(++mine, std::memory_order_relaxed);  // no fence: the lock must do without
        }
    }
    stop = true;
    for (auto& t : threads) t.join();
    EXPECT_EQ(g.intrusions, 0);
    EXPECT_EQ(g.count, expected + mine);
}

INSTANTIATE_TEST_SUITE_P(Rhythms, BiasedLockStress, ::testing::Values(0, 1, 3, 10, 50, 300));

TEST(BiasedLockStressShort, ManyNewLocksMetByTwoThreadsAtOnce) {
    for (int round = 0; round < 2000; ++round) {
        Guarded g;
        std::atomic<bool> go{false};
        std::thread other([&] {
            while (!go.load(std::memory_order_acquire)) cpu_pause();
            for (int i = 0; i < 20; ++i) g.locked_work();
        });
        go.store(true, std::memory_order_release);
        for (int i = 0; i < 20; ++i) g.locked_work();
        other.join();
        ASSERT_EQ(g.count, 40u) << round;
        ASSERT_EQ(g.intrusions, 0);
    }
}

// BiasedLockGuard A and trying B while another holds B and waits for A must end.
TEST(BiasedLockStressShort, TryingAgainstTheOrderDoesNotDeadlock) {
    BiasedLock a, b;
    std::atomic<int> done{0};
    std::thread other([&] {
        for (int i = 0; i < 20'000; ++i) {
            b.lock();
            a.lock();
            a.unlock();
            b.unlock();
        }
        ++done;
    });
    for (int i = 0; i < 20'000; ++i) {
        a.lock();
        if (b.try_lock()) b.unlock();
        a.unlock();
    }
    other.join();
    EXPECT_EQ(done, 1);
}

// Store, light barrier, load against store, heavy barrier, load: at least one side sees the other.
TEST(AsymmetricBarrier, OneOfTwoSeesTheOther) {
#ifdef VIADUCT_TSAN
    GTEST_SKIP() << "the thread sanitizer does not model barriers between processors";
#endif
    ASSERT_TRUE(asymmetric_barrier_available()) << "this kernel has no expedited membarrier";
    std::atomic<int> x{0}, y{0}, turn{0}, seen_x{0}, seen_y{0};
    constexpr int kRounds = 20'000;
    // The other thread may be without a processor.
    const auto wait_for_turn = [&turn](int mine) {
        for (int spins = 1; turn.load(std::memory_order_acquire) != mine; ++spins)
            spins % 1024 == 0 ? std::this_thread::yield() : cpu_pause();
    };
    std::thread light([&] {
        for (int i = 1; i <= kRounds; ++i) {
            wait_for_turn(2 * i - 1);
            x.store(i, std::memory_order_relaxed);
            light_barrier();
            seen_y.store(y.load(std::memory_order_relaxed), std::memory_order_relaxed);
            turn.store(2 * i, std::memory_order_release);
        }
    });
    int both_blind = 0;
    for (int i = 1; i <= kRounds; ++i) {
        turn.store(2 * i - 1, std::memory_order_release);
        y.store(i, std::memory_order_relaxed);
        i % 2 == 0 ? heavy_barrier() : heavy_barrier_process();
        seen_x.store(x.load(std::memory_order_relaxed), std::memory_order_relaxed);
        wait_for_turn(2 * i);
        if (seen_x != i && seen_y != i) ++both_blind;
    }
    light.join();
    EXPECT_EQ(both_blind, 0);
}

TEST(Futex, WaitsForAWakeOrTheTimeoutAndKeepsErrno) {
    std::atomic<uint32_t> word{0};
    const tests::RunningTime time;
    errno = EXDEV;
    futex_wait(word, 0, 20'000'000, false);
    EXPECT_GE(time.wall_ns(), 19'000'000);
    futex_wait(word, 1, -1, false);  // another value: returns at once
    EXPECT_EQ(errno, EXDEV);
    tests::SleepMark waits;
    waits.set();
    std::thread waker([&] {
        EXPECT_TRUE(tests::eventually("the other thread sleeps", [&] { return waits.has_slept(); }));
        word = 1;
        futex_wake(word, 1, false);
    });
    while (word == 0) futex_wait(word, 0, -1, false);
    waker.join();
    EXPECT_EQ(word, 1u);
}

}  // namespace
}  // namespace viaduct
