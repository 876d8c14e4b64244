// SPDX-License-Identifier: BSD-2-Clause
// Messages that a server sends back: what vipping measures, and what a doctor asks last. A message is a header and a
// pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace viaduct::messages {

struct Options {
    std::string device;
    std::string host;
    std::string discriminator = "vipping";
    std::string level = "delivery";
    uint64_t count = 0;  // 0: until stopped
    double interval_s = 1.0;
    uint32_t bytes = 56;
    bool flood = false;       // the next as soon as the answer is there
    bool poll = false;        // look for the answer without pause instead of sleeping
    long connect_wait_ms = 1000;  // for the connection
    long answer_ms = 2000;    // for one answer
    bool once = false;        // server: ends with its first client
    bool doctor = false;      // server: answers examinations as well
};

// What a client has seen. The times of answers, in their order, in microseconds.
struct Outcome {
    std::string nic, local, remote;
    uint64_t sent = 0;
    uint64_t damaged = 0;
    double seconds = 0;
    std::vector<double> round_trips_us;
    std::string ended_by;  // why it ended early; empty: as planned
};

struct Progress {
    std::function<void(const Outcome&)> connected;
    std::function<void(uint64_t sequence, double us)> answered;
    std::function<void(uint64_t sequence)> unanswered;
};

Outcome ping(const Options&, const Progress&);

// Head of each message. Both ends are of one byte order: VIA moves bytes as they are.
struct Head {
    uint32_t magic;
    uint32_t bytes;
    uint64_t sequence;
};
inline constexpr uint32_t kMagic = 0x50495620;  // "VIP"
inline constexpr uint32_t kLeastBytes = sizeof(Head);
inline constexpr uint32_t kMostBytes = 1u << 16;
inline constexpr uint32_t kReceives = 32;  // posted by each end

}  // namespace viaduct::messages
