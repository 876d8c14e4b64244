// SPDX-License-Identifier: BSD-2-Clause
// A message that is being timed: what the sender keeps of it until the receiver's answer is there. One at a time for
// each thing that is learnt. Under vi.send.lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tuner/transfer_tuner.hpp"

namespace viaduct::paramnet {

class Trial {
public:
    using Choice = TunerClass::Choice;

    // True while it has not been answered: then its result is worth a look.
    bool open() const { return open_; }
    // Numbers come from `last`, which all trials of a connection share: no answer is taken for another one's. Never 0.
    uint32_t begin(const Choice& choice, uint32_t bytes, uint32_t* last) {
        if (++*last == 0) ++*last;
        open_ = true;
        choice_ = choice;
        number_ = *last;
        bytes_ = bytes;
        ns_ = waited_ = 0;
        return number_;
    }
    // Another message goes meanwhile. True: so many have that no answer is expected any more.
    bool is_given_up() {
        constexpr uint32_t kUnanswered = 4096;
        if (!open_ || ++waited_ <= kUnanswered) return false;
        open_ = false;
        return true;
    }
    // How long the sender was at work on it. Of two ends that work at once on different messages the slower one says
    // how fast the stream is.
    void sent(uint32_t number, int64_t ns) {
        if (open_ && number == number_) ns_ = static_cast<uint32_t>(std::clamp<int64_t>(ns, 0, UINT32_MAX));
    }
    // True: that was the answer, and ns() is how long it took in all. `ns` is 0 where the sender's time is all that
    // counts.
    bool answered(uint32_t number, uint32_t ns) {
        if (!open_ || number != number_) return false;
        open_ = false;
        ns_ = std::max(ns_, ns);
        return true;
    }

    const Choice& choice() const { return choice_; }
    uint32_t bytes() const { return bytes_; }
    uint32_t ns() const { return ns_; }

private:
    bool open_ = false;
    Choice choice_;
    uint32_t number_ = 0;
    uint32_t bytes_ = 0;
    uint32_t ns_ = 0;
    uint32_t waited_ = 0;  // messages that were sent since it began
};

}  // namespace viaduct::paramnet
