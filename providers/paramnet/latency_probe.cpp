// SPDX-License-Identifier: BSD-2-Clause
// How long a long message takes: from the moment at which the sender begins it, or the receiver has finished the one
// before, until the receiver has all of it. Measured seldom, while a connection learns which method is fast
// (method_tuner.hpp). Both ends read the same clock. An end in another time namespace reports a wrong time, which does
// no further harm.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct::paramnet {

uint32_t mark_probe(Line& line, Probe kind, uint32_t trial, int64_t* begun) {
    const ProbeMark mark{now_ns(), trial, kind};
    *begun = mark.begun;
    __builtin_memcpy(line.payload + kProbeMarkAt, &mark, sizeof mark);
    return kFlagProbe;
}

ProbeMark take_probe_mark(const Endpoint& ep, const Line& line) {
    auto mark = read_payload<ProbeMark>(line, kProbeMarkAt);
    // It has waited for the one before: that is not its own time.
    if (ep.rx.in_row) mark.begun = std::max(mark.begun, now_ns());
    return mark;
}

void note_sent(Endpoint& ep, const OutgoingMessage& m) {
    ep.tx.learnt.methods.trial().sent(m.trial, now_ns() - m.begun);
}

void publish_probe_result(Endpoint& ep, const ProbeMark& mark) {
    const uint64_t ns = static_cast<uint64_t>(now_ns()) - static_cast<uint64_t>(mark.begun);
    ep.rx.own->probes[mark.kind % kProbeKinds].store(uint64_t{mark.number} << 32 | std::min<uint64_t>(ns, UINT32_MAX),
                                                     std::memory_order_relaxed);
}

namespace {

// Reads the word in which the answers of that kind are.
template <class Learner>
void take_result(const Endpoint& ep, Probe kind, Learner& learner) {
    if (!learner.trial().open()) return;
    const uint64_t timed = ep.tx.peer->probes[kind].load(std::memory_order_relaxed);
    learner.answered(static_cast<uint32_t>(timed >> 32), static_cast<uint32_t>(timed));
}

}  // namespace

void read_probe_result(Endpoint& ep) {
    take_result(ep, kProbeMethod, ep.tx.learnt.methods);
    take_result(ep, kProbePrefetch, ep.tx.learnt.answered);
}

}  // namespace viaduct::paramnet
