// SPDX-License-Identifier: BSD-2-Clause
// Whether the blocks of the next message are prefetched for writing as soon as one message was sent. Measured with
// messages of the program itself (core/tuner): by their delivery time, which the receiver reports (as in
// method_tuner.hpp), where they are answered one by one, and by the sender's own time where they follow each other.
// After a prefetch the stores of the copy hit the cache; without one, string instructions overwrite whole lines without
// reading their old contents. Which is faster differs between processors, and between dialogues and streams. Nothing
// here looks at a clock, at memory or at the lane. Under vi.send.lock.
#pragma once

#include <cstdint>

#include "core/tuner/transfer_tuner.hpp"
#include "providers/paramnet/trial.hpp"

namespace viaduct::paramnet {

class PrefetchTuner {
public:
    // Shorter messages are copied without string instructions and always gain.
    static constexpr uint32_t kLearntFrom = 2112;

    explicit PrefetchTuner(bool trials = true) : tuner_(kRules, trials) {}

    // Whether to do it after a message of that length.
    bool fetches(uint32_t bytes) const { return bytes < kLearntFrom || next_.method == kFetched; }

    // A message from kLearntFrom up is about to go. `fetched`: its blocks have been; `steady`: the ring has
    // been written to all over once. The number of the trial if it is to be timed, else 0; taken from `last`.
    uint32_t next(uint32_t bytes, bool fetched, bool steady, uint32_t* last) {
        if (trial_.is_given_up()) tuner_.tell(trial_.bytes(), trial_.choice(), TunerClass::kNeverTold);
        if (next_.timed && (!steady || trial_.open() || fetched != (next_.method == kFetched)))
            return 0;  // it is still to come
        const Choice now = next_;
        const uint32_t number = now.timed ? trial_.begin(now, bytes, last) : 0;
        next_ = tuner_.choose(bytes, kBoth, steady);
        return number;
    }
    // The message that is being timed.
    Trial& trial() { return trial_; }
    // The receiver's answer to the last trial it has had, or 0 where the sender's time is all that counts;
    // after Trial::sent().
    void answered(uint32_t number, uint32_t ns) {
        if (trial_.answered(number, ns)) tuner_.tell(trial_.bytes(), trial_.choice(), trial_.ns());
    }

private:
    using Choice = TunerClass::Choice;
    static constexpr uint8_t kFetched = 0;
    static constexpr uint32_t kBoth = 0b11;
    static constexpr TunedMethod kMethods[] = {{}, {}};
    static constexpr TunerRules kRules{.methods = kMethods};

    TransferTuner<12, 12> tuner_;
    Choice next_;  // of the message behind the last one
    Trial trial_;
};

}  // namespace viaduct::paramnet
