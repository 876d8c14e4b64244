// SPDX-License-Identifier: BSD-2-Clause
// Messages by the million with injected faults, both ways at once, held against the model. The unit test runs
// a few, the command wire_storm as many as it is told.
#pragma once

#include <string>

#include "tests/wire/model.hpp"

namespace viaduct::wire::test {

struct Storm {
    uint64_t seed = 1;
    uint64_t messages = 10'000;  // in each direction
    uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY;
    Weather weather;
    uint32_t max_frame = 1460;
    uint32_t window = Tuning{}.window;
    uint32_t zero_copy_from = UINT32_MAX;
    std::optional<Key> key;
};

inline Weather bad_weather() {
    Weather w;
    w.lose = 0.05;
    w.repeat = 0.05;
    w.damage = 0.01;
    w.reorder = 0.05;
    w.jitter = 3'000;
    w.up = 2'000'000'000;
    w.down = 50'000'000;
    return w;
}

struct StormReport {
    std::string wrong;  // empty: as it has to be
    uint64_t arrived = 0, sent = 0, lost = 0, repeated = 0, damaged = 0, flaps = 0, retransmitted = 0,
             timeouts = 0, zero_copied = 0;
    Time took = 0;
};

template <class OnProgress>
StormReport run_storm(const Storm& storm, OnProgress progress) {
    const bool reliable = storm.level != VIP_SERVICE_UNRELIABLE;
    Plan there, back;
    there.seed = storm.seed * 2 + 1;
    back.seed = storm.seed * 2 + 2;
    there.reliable = back.reliable = reliable;
    there.rdma = back.rdma = reliable;
    Tuning tuning;
    tuning.seed = storm.seed;
    tuning.max_frame = storm.max_frame;
    tuning.window = storm.window;
    tuning.key = storm.key;
    Pair pair(storm.seed, tuning, there, back, storm.level);
    pair.wire.weather = storm.weather;
    pair.a.port.zero_copy_above = pair.b.port.zero_copy_above = storm.zero_copy_from;
    StormReport report;
    const Time began = pair.wire.now;
    if (!pair.connect()) report.wrong = "the two never connected";
    Station& a = pair.a;
    Station& b = pair.b;
    a.peer_posted_at_most = b.peer_posted_at_most = storm.messages;
    const auto stop = [&] {
        if (!a.wrong.empty()) report.wrong = "client: " + a.wrong;
        if (!b.wrong.empty()) report.wrong = "server: " + b.wrong;
        if (a.how_ended || b.how_ended) report.wrong = "the connection broke";
        return !report.wrong.empty() ||
               (a.finished_count == storm.messages && b.finished_count == storm.messages);
    };
    while (!stop()) {
        a.work(storm.messages, pair.wire.now);
        b.work(storm.messages, pair.wire.now);
        progress(a.finished_count);
        const uint64_t before = a.finished_count + b.finished_count;
        if (!reliable) {
            // Nothing slows it down but the wire: one queue full for each moment.
            pair.wire.run_for(a.finished_count == storm.messages && b.finished_count == storm.messages
                                  ? 1'000'000'000
                                  : 50'000);
            continue;
        }
        if (!pair.wire.run(pair.wire.now + 30'000'000'000,
                           [&] { return stop() || a.finished_count + b.finished_count >= before + 16; }))
            report.wrong = "nothing moves any more";
    }
    if (report.wrong.empty() && reliable) {
        if (a.in_next != storm.messages || b.in_next != storm.messages)
            report.wrong = "work was finished that never arrived";
        if (a.written != a.expected_writes || b.written != b.expected_writes)
            report.wrong = "memory differs from the model";
        if (a.good_count != storm.messages || b.good_count != storm.messages) report.wrong = "work failed";
        if (a.counter != a.adds_done || b.counter != b.adds_done) report.wrong = "an atomic was done twice";
    }
    if (report.wrong.empty() && !reliable &&
        (a.messages_in > storm.messages || a.messages_in < storm.messages / 2))
        report.wrong = "too many messages, or too few";
    if (report.wrong.empty() && a.node.frames_early() + b.node.frames_early() > 64)
        report.wrong = "held frames leak";
    report.arrived = a.messages_in + b.messages_in;
    report.sent = pair.wire.sent;
    report.lost = pair.wire.lost;
    report.repeated = pair.wire.repeated;
    report.damaged = pair.wire.damaged;
    report.flaps = pair.wire.flaps;
    report.retransmitted = a.node.counters().retransmitted + b.node.counters().retransmitted;
    report.timeouts = a.node.counters().timeouts + b.node.counters().timeouts;
    report.zero_copied = a.node.counters().zero_copied + b.node.counters().zero_copied;
    report.took = pair.wire.now - began;
    return report;
}

}  // namespace viaduct::wire::test
