// SPDX-License-Identifier: BSD-2-Clause
// How long a long message takes from the moment in which the sender begins with it, or the receiver is done
// with the one before, to the one in which the receiver has all of it. Asked for seldom, while a connection
// learns which way is fast (ways.hpp). Both ends read the same clock; an end in another time namespace
// tells a wrong time, which does no harm beyond that.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "providers/paramnet/large.hpp"

namespace viaduct::paramnet {

uint32_t mark_timed(Line& line, Timed kind, uint32_t trial, int64_t* begun) {
    const TimedMark mark{now_ns(), trial, kind};
    *begun = mark.begun;
    __builtin_memcpy(line.payload + kTimedMarkAt, &mark, sizeof mark);
    return kFlagTimed;
}

TimedMark take_mark(const Endpoint& ep, const Line& line) {
    auto mark = read_payload<TimedMark>(line, kTimedMarkAt);
    // It has waited for the one before: that is not its own time.
    if (ep.rx.in_row) mark.begun = std::max(mark.begun, now_ns());
    return mark;
}

void note_sent(Endpoint& ep, const OutgoingMessage& m) { ep.tx.learnt.ways.trial().sent(m.trial, now_ns() - m.begun); }

void tell_time(Endpoint& ep, const TimedMark& mark) {
    const uint64_t ns = static_cast<uint64_t>(now_ns()) - static_cast<uint64_t>(mark.begun);
    ep.rx.own->timed[mark.kind % kTimedKinds].store(uint64_t{mark.number} << 32 | std::min<uint64_t>(ns, UINT32_MAX),
                           std::memory_order_relaxed);
}

namespace {

// Asks the word in which the answers of that kind are.
template <class Learner>
void hear(const Endpoint& ep, Timed kind, Learner& learner) {
    if (!learner.trial().open()) return;
    const uint64_t timed = ep.tx.peer->timed[kind].load(std::memory_order_relaxed);
    learner.answered(static_cast<uint32_t>(timed >> 32), static_cast<uint32_t>(timed));
}

}  // namespace

void hear_time(Endpoint& ep) {
    hear(ep, kTimedWay, ep.tx.learnt.ways);
    hear(ep, kTimedAhead, ep.tx.learnt.answered);
}

}  // namespace viaduct::paramnet
