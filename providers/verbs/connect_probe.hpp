// SPDX-License-Identifier: BSD-2-Clause
// Requests without an answer. The network may have lost the request or a refusal, which nothing repeats, or
// the program at the other end has not decided. The kernel's connection manager repeats a request after more
// than 6 s, and after more than a minute once the other host has acknowledged the request. So a second request, the
// connect probe, asks whether the first is known. Its answer is always a refusal, and says so; a request that
// is not known is made anew. Between peers no program decides: there the request is made anew at once.
// Everything here: [connect_mutex].
#pragma once

#include "providers/verbs/connect.hpp"

namespace viaduct::verbs {

inline constexpr int64_t kFirstProbeNs = 1'000'000'000;
inline constexpr int64_t kLongestProbeNs = 8'000'000'000;

// A request was sent.
void arm_probe_timer(ConnectOp&);
// The request was answered, or has ended.
void disarm_probe_timer(ConnectOp&);
// At probe_at: sends a probe, or between peers the request again.
void on_probe_timer(ConnectOp&, int64_t now);
// An event of the attempt's probe.
void advance_probe(ConnectOp&, const CmEvent&);

}  // namespace viaduct::verbs
