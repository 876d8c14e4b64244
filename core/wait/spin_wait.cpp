// SPDX-License-Identifier: BSD-2-Clause
#include "core/wait/spin_wait.hpp"

#include "core/clock/clock.hpp"
#include "core/sync/pause.hpp"
#include "core/wait/crowd_score.hpp"

namespace viaduct {
namespace {

constexpr uint32_t kPausesBetweenYields = 32;  // about 0.7 us
constexpr uint32_t kQuickLooks = 128;          // about 3 us: the answer of a peer that polls is here by then
constexpr uint32_t kYieldsWhenCrowded = 64;

}  // namespace

bool SpinWait::step() {
    if (spin_ns_ <= 0) return false;
    // Asking costs about a pause: once per round of pauses, and after each yield.
    if (looks_++ % kPausesBetweenYields == 0 || crowded_) crowded_ = crowded();
    if (crowded_) {
        // The thread that is waited for may need this processor. After so many yields without an answer, sleep.
        if (others_compute() || ++yields_ > kYieldsWhenCrowded) return false;
        yield_processor();
        return true;
    }
    cpu_pause();
    if (looks_ < kQuickLooks || looks_ % kPausesBetweenYields != 0) return true;
    const int64_t now = now_ns();
    if (began_ == 0) began_ = now;
    if (now - began_ > spin_ns_) return false;
    if (gives_way()) yield_processor();
    return true;
}

}  // namespace viaduct
