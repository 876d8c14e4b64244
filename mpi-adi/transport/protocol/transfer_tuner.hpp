// SPDX-License-Identifier: BSD-2-Clause
// Which way long messages of one connection take, where there are two that need no copy aside: remote reads
// and writes, or frames which both processes copy through memory that they share. The one is twice as quick
// on some machines and the other four times on others, so the receiver, who chooses, learns it from the
// messages themselves, for each power of two of their length: some go each way, and the one that took less
// time in all is taken. Not the one that took the least time once: of messages that overlap two may end at
// once, and each counts from the end of the one before. Later they are tried again: soon, until a trial
// confirms the one before (one of them may have met memory that nobody had written to yet, or a process that
// was not running), then seldom, because processors of virtual machines are moved about.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace viaduct::protocol {

class TransferTuner {
public:
    enum Route : uint8_t { remote, frames };

    struct Choice {
        Route route = remote;
        bool timed = false;   // how long it takes is of interest
        bool counts = false;  // and to be told
        uint32_t trial = 0;   // which one it is of
    };

    // The way of the next message of this length. Those that are tried go in two groups, so that messages
    // which overlap are mostly of one way; the first ones of a group tell nothing: the last of the other
    // group may have hidden them, and the first frames may never have been written to.
    Choice choose(size_t length) {
        Class& c = of(length);
        if (c.tried < kTrials[remote] + kTrials[frames]) {
            const unsigned at = c.tried++;
            return at < kTrials[remote]
                       ? Choice{remote, true, at >= kTrials[remote] - kCounted, c.trial}
                       : Choice{frames, true, c.tried > kTrials[remote] + kTrials[frames] - kCounted,
                                c.trial};
        }
        const Route way = c.best;
        // The last of a trial may wait behind many that were chosen after it.
        if (++c.since >= (c.is_known() ? c.pause : kLongestPause)) {
            c.since = c.tried = 0;
            c.told[remote] = c.told[frames] = 0;
            c.took[remote] = c.took[frames] = 0;
            ++c.trial;
        }
        return {way, false, false, 0};
    }
    // Those of an earlier trial tell nothing.
    void tell(size_t length, const Choice& choice, uint64_t ns) {
        Class& c = of(length);
        if (choice.trial != c.trial) return;
        c.took[choice.route] += ns;
        ++c.told[choice.route];
        if (!c.is_known()) return;
        const Route way = c.took[frames] < c.took[remote] ? frames : remote;
        c.pause = c.decided && way == c.best ? std::min(8 * c.pause, kLongestPause) : kFirstPause;
        c.best = way;
        c.decided = true;
    }

    static constexpr unsigned kCounted = 3;                            // messages of each way
    static constexpr unsigned kTrials[2] = {4, 11};                    // and with those before
    static constexpr unsigned kFirstPause = 64, kLongestPause = 4096;  // messages between trials

private:
    struct Class {
        uint64_t took[2] = {};  // those that were told of, ns
        unsigned told[2] = {};  // how many they are
        unsigned tried = 0;
        uint32_t trial = 0;
        unsigned since = 0, pause = kFirstPause;
        Route best = frames;
        bool decided = false;
        bool is_known() const { return told[remote] >= kCounted && told[frames] >= kCounted; }
    };
    static constexpr unsigned kFirst = 13, kLast = 24;  // 8 KiB and less to 16 MiB and more
    Class& of(size_t length) {
        const unsigned bits = static_cast<unsigned>(std::bit_width(length | 1)) - 1;
        return classes_[std::clamp(bits, kFirst, kLast) - kFirst];
    }

    Class classes_[kLast - kFirst + 1];
};

}  // namespace viaduct::protocol
