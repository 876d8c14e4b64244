// SPDX-License-Identifier: BSD-2-Clause
// Which way a connection sends its long messages: learnt from messages of the program itself, whose delivery
// the receiver times. Nothing here looks at a clock, at memory or at the lane: lane_send.cpp asks, and hands
// in what was measured. Under vi.send.lock.
//
// Why not measured beforehand: it takes two processors at once. Ranks and pinned programs have one each, and
// the peer polls on the other; only the two ends themselves know how far they are from each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace viaduct::paramnet {

enum class Way : uint8_t {
    plain,      // through the ring of blocks
    streaming,  // the same, written past the caches
    pull,       // fetched by the receiver out of the sender's memory
};
inline constexpr uint32_t kWays = 3;

// A limit that nobody has set: it is learnt.
inline constexpr uint32_t kLearnt = UINT32_MAX - 1;

class Ways {
public:
    // Lengths from which on that way is taken; 0 or UINT32_MAX: never; kLearnt: where it has proved the
    // better one.
    struct Limits {
        uint32_t stream_from = kLearnt;
        uint32_t pull_from = 0;
    };
    struct Choice {
        Way way = Way::plain;
        uint32_t trial = 0;  // of a message that is to be timed: the number of the trial, else 0
    };

    Ways() = default;
    explicit Ways(const Limits& limits) : limits_(limits) {}

    // A message of that length is about to go. `can_pull`: it is one the receiver could fetch. `steady`: the
    // ring has been written to all over once, so that its pages are there.
    Choice next(uint32_t bytes, bool can_pull, bool steady);

    // Whether a message of that length takes the plain way without another look at the rest; if so it counts
    // as one that has gone. Where it does not know, next() does.
    bool stays_plain(uint32_t bytes);

    // True while a trial has not been answered: then its result is worth a look.
    bool in_trial() const { return trial_.open; }
    // How long the sender was at work on the message of the last trial. Of two ends that work at once on
    // different messages the slower one says how fast the stream is.
    void sent(uint32_t number, int64_t ns);
    // The receiver's answer to the last trial it has had; after sent().
    void answered(uint32_t number, uint32_t ns);

    // A message was not fetched although it waited for long: the receiver is not looking. For a while
    // messages that fit the ring stay there. `message`: the same for every look at the same message.
    void not_fetched(uint32_t message);
    // How long a message that waits to be fetched may wait before that is said of it.
    static int64_t patience_ns(uint32_t bytes);

private:
    static constexpr uint32_t kClasses = 9;  // 8 KiB, 16 KiB, ... 2 MiB and more
    struct Class {
        std::array<uint32_t, kWays> best{};   // least time of a message, ns for 64 KiB; 0: not known
        std::array<uint8_t, kWays> rounds{};  // tried so often
        bool decided = false;
        bool streams =
            true;  // what is right where a processor's stores fetch lines from another's cache slowly
        bool pulls = false;
        uint32_t since = 0;  // messages since it was decided
    };
    static const Class kShort;  // too short for anything to be learnt
    struct Trial {
        bool open = false;
        Way way = Way::plain;
        uint32_t in = 0;  // class
        uint32_t bytes = 0;
        uint32_t sent_ns = 0;
        uint32_t waited = 0;  // messages that have gone meanwhile
    };

    Class& class_of(uint32_t bytes);
    Way settled(const Class&, uint32_t bytes, bool can_pull) const;
    // The way to be tried next: each several times in a row, since caches have to get used to it. None when
    // all were.
    std::optional<Way> untried(const Class&, uint32_t bytes) const;
    void decide(Class&, uint32_t bytes);
    bool learns_streaming() const { return limits_.stream_from == kLearnt; }
    bool learns_pulling(uint32_t bytes) const;

    Limits limits_;
    std::array<Class, kClasses> classes_{};
    Trial trial_;
    uint32_t number_ = 0;      // of the last trial
    uint32_t pause_ = 0;       // so many messages more stay in the ring
    uint32_t next_pause_ = 0;  // length of the next pause
    uint32_t fetched_ = 0;     // messages given out to be fetched since the last pause
    uint32_t blamed_ = 0;      // the message that has caused it
};

}  // namespace viaduct::paramnet
