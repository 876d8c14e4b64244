// SPDX-License-Identifier: BSD-2-Clause
// Which route the long messages of one connection take, where the lane offers two (Lane::frames_may_be_faster): remote
// reads and writes, or frames that both processes copy through shared memory. Some machines move them twice as fast by
// the first, others four times as fast by the second. So the receiver, which chooses, measures both (docs/adi.md).
//
// A trial sends some messages by each route, for each power of two of the length, and the route whose counted messages
// took less time in sum is kept. The least time of one message would mislead: two messages that overlap may end at the
// same moment, and each is timed from the end of the one before. The next trial comes after kFirstPause messages, and
// after eight times as many, up to kLongestPause, each time a trial confirms the kept route. An early trial may have
// met memory that was never written to or a process that was not running; later ones are for virtual machines, whose
// processors are moved.
//
// One object for each peer, used by the protocol module under the engine's lock. It has no clock: the caller measures.
// core/tuner/transfer_tuner.hpp is the tuner of paramnet; this class does not use it.
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
        bool timed = false;   // part of a trial: the caller notes when it ends
        bool counts = false;  // and reports its time by tell()
        uint32_t trial = 0;   // number of the trial
    };

    // The route of the next message of this length. A trial is kTrials[remote] messages by remote access, then
    // kTrials[frames] in frames, so that messages that overlap are mostly of one route. Only the last kCounted of each
    // group count: the first ones may overlap the other group, or be the first to write to the frames' memory.
    Choice choose(size_t length) {
        Class& c = of(length);
        if (c.tried < kTrials[remote] + kTrials[frames]) {
            const unsigned at = c.tried++;
            return at < kTrials[remote]
                       ? Choice{remote, true, at >= kTrials[remote] - kCounted, c.trial}
                       : Choice{frames, true, c.tried > kTrials[remote] + kTrials[frames] - kCounted,
                                c.trial};
        }
        const Route route = c.best;
        // The pause is counted from the result of a trial. A trial without a result (its last messages may wait behind
        // many others) is given up after kLongestPause messages.
        if (++c.since >= (c.is_known() ? c.pause : kLongestPause)) {
            c.since = c.tried = 0;
            c.told[remote] = c.told[frames] = 0;
            c.took[remote] = c.took[frames] = 0;
            ++c.trial;
        }
        return {route, false, false, 0};
    }
    // How long a message took whose choice counts. A time of an earlier trial is ignored.
    void tell(size_t length, const Choice& choice, uint64_t ns) {
        Class& c = of(length);
        if (choice.trial != c.trial) return;
        c.took[choice.route] += ns;
        ++c.told[choice.route];
        if (!c.is_known()) return;
        const Route route = c.took[frames] < c.took[remote] ? frames : remote;
        c.pause = c.decided && route == c.best ? std::min(8 * c.pause, kLongestPause) : kFirstPause;
        c.best = route;
        c.decided = true;
    }

    static constexpr unsigned kCounted = 3;                            // of each route, in a trial
    static constexpr unsigned kTrials[2] = {4, 11};                    // all messages of each route, in a trial
    static constexpr unsigned kFirstPause = 64, kLongestPause = 4096;  // messages between trials

private:
    struct Class {
        uint64_t took[2] = {};  // sum of the times that were told, ns
        unsigned told[2] = {};  // how many times were told
        unsigned tried = 0;     // messages of this trial that were chosen
        uint32_t trial = 0;
        unsigned since = 0, pause = kFirstPause;  // messages after the trial; how many until the next one
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
