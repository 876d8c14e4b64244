// SPDX-License-Identifier: BSD-2-Clause
// Crowd score: whether other threads need the processors of a polling loop, measured by how long its yields take
// (spec/performance R8; docs/data-path.md, "Waiting"). VIPL's polls and waits use it. Without other threads a polling
// loop makes two system calls: a yield of a third of a microsecond every 200 us, every 20 us where the thread may use
// one processor only, and sched_getaffinity every 100 ms.
// Bound: a message that comes while a poll yields is found when the kernel runs this thread again. A wait yields 64
// times at most and then sleeps, to be woken by the message. Beside a computing thread there is one yield in 25 ms at
// first, in 1.6 s later.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct {

// Any thread, no lock. Of two yields that are counted at once one may be lost; later ones make up for it.
class CrowdScore {
public:
    // Counts a yield that took `took` ns and ended at `now`. It was used when another thread ran meanwhile.
    void yielded(int64_t took, int64_t now = 0);
    // Each used yield adds 2 (at most 8), each unused one takes 1. Crowded: at 4, on one allowed processor at 2. A
    // thread that is bound to one processor does not count as crowded for that: ranks and servers may each have their
    // own.
    bool many() const { return score_.load(std::memory_order_relaxed) >= kCrowdAt; }
    bool some() const { return score_.load(std::memory_order_relaxed) >= kCrowdOnOneAt; }
    // The other threads keep the processor for a time slice: yields take long on average. False once in a while, so
    // that one yield tells whether that is still so.
    bool computes(int64_t now) const {
        return average_.load(std::memory_order_relaxed) >= kLongYield && now < until_.load(std::memory_order_relaxed);
    }

private:
    // Dozens of processes that only look for messages come round in less; a time slice, which ends at a tick of the
    // kernel's clock, is mostly more. One that was not used up, among those, changes little.
    static constexpr int64_t kLongYield = 500'000;
    static constexpr int64_t kMostCounted = 16 * kLongYield;
    static constexpr int64_t kShortestValidity = 25'000'000;
    static constexpr int64_t kLongestValidity = 1'600'000'000;
    static constexpr int kCrowdAt = 4;
    static constexpr int kCrowdOnOneAt = 2;
    static constexpr int kMost = 8;
    static constexpr int64_t kPlainYield = 350;  // upper guess of a yield that no other thread uses, ns
    static constexpr int64_t kSwitches = 4;  // two switches take longer than so many of those: a call whose code is in
                                             // no cache takes up to three, switches take six and more

    std::atomic<int> score_{0};
    std::atomic<int64_t> quickest_{kPlainYield};
    std::atomic<int64_t> average_{0};  // of the last yields, ns
    std::atomic<int64_t> valid_for_{0};   // how long it is valid without a probe
    std::atomic<int64_t> until_{0};
};

// True when others need the processors we spin on: recent yields have let them run.
bool crowded();

// Yields, and finds from how long that took whether another thread ran.
void yield_processor();

// The other threads compute. While they do, each yield costs a time slice of every one of them, and a process that
// sleeps gets the processor when it is woken: a wait sleeps at once, and does not yield.
bool others_compute();

// For polling loops, once in a while (every few microseconds): gives way when crowded, else seldom, to notice
// that it has become so.
void between_polls();

// As between_polls() found it last: one load, for polling loops between two rounds.
inline std::atomic<bool> crowd_hint{false};

// A wait of the calling thread that can sleep, while the object lives. Its looks are polls (between_polls, give_way),
// but beside threads that compute they do not yield: the wait sleeps instead.
class WaitThatCanSleep {
public:
    WaitThatCanSleep() : told_(crowd_hint.load(std::memory_order_relaxed)) {
        if (told_) [[unlikely]]
            tell(true);
    }
    ~WaitThatCanSleep() {
        if (told_) [[unlikely]]
            tell(false);
    }
    WaitThatCanSleep(const WaitThatCanSleep&) = delete;
    WaitThatCanSleep& operator=(const WaitThatCanSleep&) = delete;

private:
    static void tell(bool begins);
    bool told_;
};

// For an empty poll while crowd_hint: yields, and now and then looks whether that is still needed.
void give_way();

// Off: no loop gives way, however many processes wait. The process's own choice ([vipl] give_way), before it polls.
void switch_giving_way(bool on);
bool gives_way();

}  // namespace viaduct
