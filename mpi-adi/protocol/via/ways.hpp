// SPDX-License-Identifier: BSD-2-Clause
// Which way long messages of one connection take, where there are two that need no copy aside: remote reads
// and writes, which the kernel does where memory is not mapped, or slots, which both processes copy through.
// The one is twice as quick on some machines and the other four times on others, so the receiver, who
// chooses, learns it from the messages themselves, for each power of two of their length: some go each way,
// and the least time of either counts. Later they are tried anew: first soon, because slots that nobody has
// written to yet cost page faults, then seldom, because processors of virtual machines are moved about.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace viaduct::via {

class Ways {
public:
    enum Way : uint8_t { remote, slots };

    struct Choice {
        Way way;
        bool timed;   // how long it takes is of interest
        bool counts;  // and to be told
    };

    // The way of the next message of this length. Those that are tried go in two groups, so that messages
    // which overlap are mostly of one way; the first ones of a group tell nothing: the last of the other
    // group may have hidden them, and the first slots may never have been written to.
    Choice choose(size_t length) {
        Class& c = of(length);
        if (c.trials < kTrials[remote] + kTrials[slots]) {
            const unsigned at = c.trials++;
            return at < kTrials[remote]
                       ? Choice{remote, true, at >= kTrials[remote] - kCounted}
                       : Choice{slots, true, c.trials > kTrials[remote] + kTrials[slots] - kCounted};
        }
        const Way way = c.best;
        if (++c.since == c.pause) {
            const unsigned pause = std::min(8 * c.pause, kLongestPause);
            c = Class();
            c.pause = pause;
        }
        return {way, false, false};
    }
    void tell(size_t length, Way way, uint64_t ns) {
        Class& c = of(length);
        c.least[way] = std::min(c.least[way], std::max<uint64_t>(ns, 1));
        c.best = c.least[slots] < c.least[remote] ? slots : remote;
    }

    static constexpr unsigned kCounted = 4;                            // messages of each way
    static constexpr unsigned kTrials[2] = {5, 12};                    // and with those before
    static constexpr unsigned kFirstPause = 64, kLongestPause = 4096;  // messages between trials

private:
    struct Class {
        uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
        unsigned trials = 0;
        unsigned since = 0, pause = kFirstPause;
        Way best = remote;
    };
    static constexpr unsigned kFirst = 13, kLast = 24;  // 8 KiB and less to 16 MiB and more
    Class& of(size_t length) {
        const unsigned bits = static_cast<unsigned>(std::bit_width(length | 1)) - 1;
        return classes_[std::clamp(bits, kFirst, kLast) - kFirst];
    }

    Class classes_[kLast - kFirst + 1];
};

}  // namespace viaduct::via
