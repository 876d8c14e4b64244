// SPDX-License-Identifier: BSD-2-Clause
// Whether the blocks of the next message are fetched for writing as soon as one has gone, learnt from
// messages of the program itself: by the time of their delivery where they are answered one by one, which the
// receiver tells (as ways.hpp), by the sender's own where they follow each other. Fetching them turns the
// copy into stores that hit; left where they are, string instructions take whole lines over without their old
// contents. Which is faster differs from processor to processor, and between dialogues and streams. Nothing
// here looks at a clock, at memory or at the lane. Under vi.send.lock.
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::paramnet {

class Ahead {
public:
    // Shorter messages are copied without string instructions and always gain.
    static constexpr uint32_t kLearntFrom = 2112;

    // Whether to do it after a message of that length.
    bool fetches(uint32_t bytes) const { return bytes < kLearntFrom || fetches_; }

    // A message from kLearntFrom up is about to go. `fetched`: its blocks have been; `steady`: the ring has
    // been written to all over once. The number of the trial if it is to be timed, else 0.
    uint32_t next(uint32_t bytes, bool fetched, bool steady);
    // True while a trial has not been answered: then its result is worth a look.
    bool in_trial() const { return open_; }
    // How long the sender was at work on the message of the last trial, and on what it fetched behind it.
    void sent(uint32_t number, int64_t ns);
    // The receiver's answer to the last trial it has had, or 0 where the sender's time is all that counts;
    // after sent().
    void answered(uint32_t number, uint32_t ns);

private:
    void decide();

    bool fetches_ = true;
    bool decided_ = false;
    bool open_ = false;
    std::array<uint8_t, 2> rounds_{};  // tried so often; [1]: with blocks that were fetched
    std::array<uint32_t, 2> best_{};   // least time of a message, ns for 64 KiB; 0: not known
    uint32_t number_ = 0;              // of the last trial
    uint32_t bytes_ = 0;               // of its message
    uint32_t sent_ns_ = 0;
    uint32_t waited_ = 0;  // messages that have gone since it was opened
    uint32_t since_ = 0;   // messages since it was decided
};

}  // namespace viaduct::paramnet
