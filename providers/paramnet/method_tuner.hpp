// SPDX-License-Identifier: BSD-2-Clause
// By which method a connection sends its long messages: learnt from messages of the program itself, whose delivery the
// receiver times (core/tuner). Nothing here looks at a clock, at memory or at the lane: lane_send.cpp asks, and passes
// in what was measured. Under vi.send.lock.
//
// Why it is not measured beforehand: a measurement needs two processors at once. Ranks and pinned programs have one
// each, and the peer polls on the other. Only the two ends themselves can measure the distance between them.
#pragma once

#include <cstdint>

#include "core/tuner/transfer_tuner.hpp"
#include "providers/paramnet/trial.hpp"

namespace viaduct::paramnet {

enum class Method : uint8_t {
    streaming,  // through the ring of blocks, written past the caches
    plain,      // the same by plain stores
    pull,       // fetched by the receiver out of the sender's memory
};

// A limit that is not set: it is measured.
inline constexpr uint32_t kLearnt = UINT32_MAX - 1;

class MethodTuner {
public:
    // Lengths from which on that method is taken; 0 or UINT32_MAX: never; kLearnt: where it has proved the
    // better one.
    struct Limits {
        uint32_t stream_from = kLearnt;
        uint32_t pull_from = 0;
        bool trials = true;  // false: nothing is tried, so nothing is learnt
    };
    struct Choice {
        Method method = Method::plain;
        uint32_t trial = 0;  // of a message that is to be timed: the number of the trial, else 0
    };

    MethodTuner() = default;
    explicit MethodTuner(const Limits& limits) : limits_(limits), tuner_(kRules, limits.trials) {}

    // A message of that length is about to go. `can_pull`: it is one the receiver could fetch. `steady`: the
    // ring has been written to all over once, so that its pages are there. Trials take their numbers from `last`.
    Choice next(uint32_t bytes, bool can_pull, bool steady, uint32_t* last);

    // Whether a message of that length takes the plain method without another look at the rest; if so it counts
    // as one that was sent. Where it cannot decide, next() does.
    bool stays_plain(uint32_t bytes);

    // The message that is being timed.
    Trial& trial() { return trial_; }
    // The receiver's answer to the last trial it has had; after Trial::sent().
    void answered(uint32_t number, uint32_t ns) {
        if (trial_.answered(number, ns)) tuner_.tell(trial_.bytes(), trial_.choice(), trial_.ns());
    }

    // A message was not fetched although it waited for long: the receiver is not looking. For a while
    // messages that fit the ring stay there. `message`: the same for every look at the same message.
    void not_fetched(uint32_t message);
    // How long a message that waits to be fetched may wait before that is said of it.
    static int64_t ack_limit_ns(uint32_t bytes);

private:
    // Plain stores are tried behind those that are right where a processor's stores fetch lines from another's cache
    // slowly. Fetching makes the sender wait for the receiver: it has to be better by a tenth in all, and is tried
    // only while the receiver looks.
    static constexpr TunedMethod kMethods[] = {{}, {}, {.handicap = 5, .after_others = true}};
    static constexpr TunerRules kRules{.methods = kMethods};

    bool learns_streaming() const { return limits_.stream_from == kLearnt; }

    Limits limits_;
    TransferTuner<13, 21> tuner_{kRules};
    Trial trial_;
    uint32_t pause_ = 0;       // so many messages more stay in the ring
    uint32_t next_pause_ = 0;  // length of the next pause
    uint32_t fetched_ = 0;     // messages given out to be fetched since the last pause
    uint32_t blamed_ = 0;      // the message that has caused it
};

}  // namespace viaduct::paramnet
