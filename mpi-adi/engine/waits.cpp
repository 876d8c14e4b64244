// SPDX-License-Identifier: BSD-2-Clause
// See waits.hpp. All of this is guarded by the engine's lock, but the words that threads sleep on.
#include "mpi-adi/engine/waits.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/sync/futex.hpp"
#include "core/sync/pause.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/word_wait.hpp"

namespace viaduct::mpi {
namespace {

struct Sleeper {
    const Wait* wait;
    ShownWait* shown;
    std::atomic<uint32_t> woken{0};
    bool listed = false;
    Sleeper* before = nullptr;
    Sleeper* after = nullptr;
};

// One that has company in its own process leaves the processor sooner.
constexpr unsigned kYieldsAlone = 200;
constexpr unsigned kYieldsAmongThreads = 8;
// Where processors abound, how long a thread looks before it sleeps.
constexpr int64_t kLookingNs = 1'000'000;
// Modules wake the watcher for what comes in. What it waits for may also be completed by another thread, which
// cannot wake it there: the watcher sees that after the first of these times, and after up to the second when
// nothing has come for a while. The third is the sleep while something has to be polled that no module announces,
// and while a module keeps the lock in its sleep.
constexpr unsigned kSleepMicroseconds = 1'000;
constexpr unsigned kLongSleepMicroseconds = 4'000;
constexpr unsigned kShortSleepMicroseconds = 200;
// A watcher that was woken for a message of another thread, which polls by itself, keeps away from the modules
// until no other thread has polled for so long: otherwise each message of the other thread would wake it.
constexpr int64_t kAsideNs = 500'000;
// How often the progress thread looks without finding anything before it sleeps: the next message often comes soon.
constexpr unsigned kLooksBetweenCalls = 200;
// Nothing is lost without it.
constexpr int64_t kAsleepNs = 1'000'000'000;

Sleeper* newest = nullptr;     // of those asleep
Sleeper* successor = nullptr;  // woken to poll, and not yet there
const void* poller = nullptr;  // the thread that polls
bool watched = false;          // a thread sleeps at the modules
unsigned aside = 0;            // threads that look again by themselves soon
unsigned unannounced = 0;
uint32_t passes = 0;          // of polling threads
bool modules_let_go = false;  // they give up the lock while they sleep, so other threads go on during a long sleep

const void* self() {
    static thread_local char here;
    return &here;
}

int64_t now_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void list(Sleeper& one) {
    one.listed = true;
    one.before = nullptr;
    one.after = newest;
    if (newest != nullptr) newest->before = &one;
    newest = &one;
}

void unlist(Sleeper& one) {
    if (!one.listed) return;
    one.listed = false;
    (one.before != nullptr ? one.before->after : newest) = one.after;
    if (one.after != nullptr) one.after->before = one.before;
}

// True: it was woken, and not by the clock.
bool sleep_until_woken(const Wait& wait, ShownWait& shown, int64_t at_most) {
    Sleeper me{&wait, &shown};
    list(me);
    const bool may_sleep = announce_word_waits();
    const uint32_t depth = EngineLock::let_go();
    if (may_sleep && me.woken.load(std::memory_order_acquire) == 0) futex_wait(me.woken, 0, at_most, false);
    EngineLock::take_back(depth);
    unlist(me);
    if (successor == &me) successor = nullptr;
    return me.woken.load(std::memory_order_relaxed) != 0;
}

// Another thread polls from now on, for itself and for those asleep.
void hand_over() {
    if (newest == nullptr || poller != nullptr || watched || aside != 0 || successor != nullptr) return;
    successor = newest;
    unlist(*successor);
    successor->woken.store(1, std::memory_order_release);
    futex_wake(successor->woken, 1, false);
}

bool must_look_soon() { return !engine.activities.empty() || !engine.polled.empty() || unannounced != 0; }

void watch(unsigned microseconds) {
    if (!announce_word_waits()) return EngineLock::yield();
    protocol* const module =
        engine.sleepers[engine.next_sleeper++ % static_cast<unsigned>(engine.sleeper_count)];
    const bool lasts = engine.sleeper_count == 1 && !must_look_soon() && modules_let_go;
    watched = true;
    if (module->pt_block(lasts ? microseconds : kShortSleepMicroseconds) > 0) count_moving_pass();
    watched = false;
}

// Polls until the condition holds (true), or another thread does what is left to do here: sleep at the
// modules. `has_spun`: it has polled for long enough since something moved, so when it was woken for nothing it sleeps
// again at once.
bool poll_until(const Wait& wait, bool& has_spun, ShownWait& shown) {
    WaitPolicy policy(spin_limit, cpu_contention);
    int64_t since = 0;
    unsigned sleep = kSleepMicroseconds;
    const void* const me = self();
    poller = me;
    for (;;) {
        passes++;
        const bool moved = progress();
        if (moved) shown.moved();
        if (wait.holds(wait.argument)) {
            policy.rewarded(engine.crowded);
            return true;
        }
        if (poller != nullptr && poller != me)
            return false;  // a callback has waited, and another thread polls now
        poller = me;
        if (EngineLock::give_turn()) continue;
        if (moved) {
            policy.moved(engine.crowded);
            sleep = kSleepMicroseconds;
            has_spun = false;
            continue;
        }
        const unsigned yields = newest == nullptr && !watched ? kYieldsAlone : kYieldsAmongThreads;
        switch (policy.next(engine.crowded, yields, has_spun, [&] { return wait.for_one_here(wait.argument); })) {
            case WaitPolicy::Step::pause:
                cpu_pause();
                continue;
            case WaitPolicy::Step::ask: {
                cpu_pause();
                const int64_t now = now_ns();
                if (policy.idle() <= WaitPolicy::kPassesBetweenYields) since = now;
                if (now - since >= kLookingNs) break;
                EngineLock::yield();
                continue;
            }
            case WaitPolicy::Step::yield:
                EngineLock::yield();
                continue;
            case WaitPolicy::Step::sleep:
                break;
        }
        shown.found_nothing([&](Awaited& what) { wait.describe(wait.argument, what); });
        if (engine.sleeper_count == 0 || (watched && must_look_soon())) {
            EngineLock::nap(int64_t{kShortSleepMicroseconds} * 1000);
            continue;
        }
        has_spun = true;
        poller = nullptr;
        if (watched) return false;
        watch(sleep);
        sleep = std::min(2 * sleep, kLongSleepMicroseconds);
        if (poller != nullptr) return false;
        poller = me;
    }
}

// The end of a wait, also by an exception.
struct Leaving {
    const void* outer;
    ~Leaving() {
        if (poller == self()) poller = outer;
        hand_over();
    }
};

}  // namespace

void wait_among_threads(const Wait& wait) {
    if (!EngineLock::is_mine()) {  // in MPI_Init, before the lock is in force
        const Critical guard;
        return wait_among_threads(wait);
    }
    const void* const outer =
        poller == self() ? poller : nullptr;  // a callback of the thread that polls waits
    const Leaving leaving{outer};
    bool has_spun = false;
    ShownWait shown;
    while (!wait.holds(wait.argument)) {
        if ((poller != nullptr && poller != self()) || (has_spun && watched)) {
            shown.show([&](Awaited& what) { wait.describe(wait.argument, what); });
            // It slept until its limit: another long look would find no more.
            if (!sleep_until_woken(wait, shown, kAsleepNs)) has_spun = true;
        } else if (!poll_until(wait, has_spun, shown) && !watched) {
            // It was woken for a message of another thread, which polls.
            aside++;
            uint32_t seen = 0;
            do {
                seen = passes;
            } while (!sleep_until_woken(wait, shown, kAsideNs) && (passes != seen || poller != nullptr) && !watched);
            aside--;
        }
    }
}

void progress_between_calls(const std::atomic<bool>& over) {
    const uint32_t calls = EngineLock::calls();
    unsigned looks = 0;
    unsigned sleep = kSleepMicroseconds;
    const int64_t until = now_ns() + kLongestProgressNs;
    while (!over.load(std::memory_order_relaxed) && EngineLock::calls() == calls && poller == nullptr && !watched &&
           now_ns() < until) {
        if (progress()) {
            count_moving_pass();
            looks = 0;
            sleep = kSleepMicroseconds;
            (void)EngineLock::give_turn();
        } else if (EngineLock::give_turn()) {
            continue;
        } else if (!engine.crowded && ++looks < kLooksBetweenCalls) {
            const uint32_t depth = EngineLock::let_go();
            cpu_pause();
            EngineLock::take_back(depth);
        } else if (engine.sleeper_count == 0) {
            EngineLock::nap(int64_t{kLongSleepMicroseconds} * 1000);
        } else {
            watch(sleep);
            sleep = std::min(2 * sleep, kLongSleepMicroseconds);
        }
    }
    hand_over();
}

Unannounced::Unannounced() { unannounced++; }
Unannounced::~Unannounced() { unannounced--; }

bool sleepers_are_there() { return newest != nullptr; }

void Woken::gather() {
    for (Sleeper* one = newest; one != nullptr;) {
        Sleeper& sleeper = *std::exchange(one, one->after);
        try {
            if (!sleeper.wait->holds(sleeper.wait->argument)) continue;
        } catch (...) {
            // It is woken, asks by itself, and has the exception.
        }
        unlist(sleeper);
        // Before it runs it waits for a processor, and for nothing that others do.
        sleeper.shown->over();
        sleeper.woken.store(1, std::memory_order_release);
        if (count_ == kMost)
            futex_wake(sleeper.woken, 1, false);
        else
            words_[count_++] = &sleeper.woken;
    }
}

// The wait may have ended, and its word with it: no thread sleeps there then, and none is woken.
void Woken::wake() {
    for (int i = 0; i < count_; i++) futex_wake(*words_[i], 1, false);
}

namespace {
thread_local uint32_t depth_before_sleep = 0;
}

void let_go_for_sleep() {
    if (!EngineLock::enabled() || !EngineLock::is_mine()) return;
    modules_let_go = true;
    depth_before_sleep = EngineLock::let_go();
}

void take_back_after_sleep() {
    if (depth_before_sleep != 0) EngineLock::take_back(std::exchange(depth_before_sleep, 0));
}

}  // namespace viaduct::mpi
