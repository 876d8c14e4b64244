// SPDX-License-Identifier: BSD-2-Clause
// Wait policy: what a wait of libcmpi does after a pass over everything that may move has moved nothing. Where those
// that wait and processors match, it looks again, and checks now and then whether others need the processor;
// where they do not, it looks for as long as that pays (spin_limit.hpp), gives way for a while, and then sleeps until
// it is woken. Beside a computing thread (cpu_contention.hpp) it looks briefly and sleeps, whatever the number; and
// where the awaited process is on its own processor (cpu_placement.hpp) it gives way at once.
// Bound: what comes is seen at the next look: after a pause, after a yield, or after the wake-up of a sleeper.
#pragma once

#include "core/wait/cpu_contention.hpp"
#include "core/wait/spin_limit.hpp"

namespace viaduct {

// One wait, of one thread; its limit and its contention are those of the process.
class WaitPolicy {
public:
    // Passes without contention between two questions to the system: after some tens of microseconds others may
    // need our processor.
    static constexpr unsigned kPassesBetweenYields = 1024;

    enum class Step {
        pause,  // look again
        ask,    // the same, after a yield that tells whether another thread computes; the place for a look at a clock
        yield,
        sleep,
    };

    constexpr WaitPolicy(SpinLimit& limit, CpuContention& contention) : spins_(limit), contention_(contention) {}

    // A pass has moved something.
    void moved(bool crowded) {
        if (idle_ != 0) [[unlikely]]
            rewarded(crowded);
    }
    // The wait has ended, or begins anew.
    void rewarded(bool crowded) {
        if (crowded && idle_ != 0 && idle_ < limit_) spins_.rewarded(idle_);
        idle_ = 0;
    }
    // A pass has moved nothing. `crowded`: waiting threads are more than processors; it yields `yields` times then.
    // `has_spun`: it has polled for long enough before. `here()`, called while it still looks: the awaited process
    // is on our processor, and cannot run until we give way.
    template <class Here>
    Step next(bool crowded, unsigned yields, bool has_spun, Here here) {
        count(crowded);
        // That says nothing about how long to look for running threads.
        if (crowded && idle_ <= limit_ && here()) idle_ = limit_ + 1;
        if (crowded && idle_ == limit_) spins_.expired();
        if (idle_ < limit_ && !has_spun) return Step::pause;
        if (has_spun || contention_.computes()) return Step::sleep;
        if (!crowded) return idle_ % kPassesBetweenYields == 0 ? Step::ask : Step::pause;
        return idle_ < limit_ + yields ? Step::yield : Step::sleep;
    }
    // For waits with other rules: one more fruitless pass, and how many there were. Without the number of those
    // waiting threads nothing is learnt from it.
    unsigned count(bool crowded) {
        if (idle_++ == 0) limit_ = crowded ? spins_.limit() : SpinLimit::kMost;
        return idle_;
    }
    unsigned count() { return ++idle_; }
    unsigned idle() const { return idle_; }

private:
    SpinLimit& spins_;
    CpuContention& contention_;
    unsigned idle_ = 0;   // passes that moved nothing
    unsigned limit_ = 0;  // of those, how many are spent looking
};

}  // namespace viaduct
