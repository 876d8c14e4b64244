// SPDX-License-Identifier: BSD-2-Clause
// Requests that nobody answers. The network may have lost the request or a refusal, which nothing repeats, or
// the program at the other end thinks it over for as long as it likes. The kernel's connection manager asks
// again after more than 6 s, and after more than a minute when it was told that the request has arrived. So a
// second, small request asks whether the first is known: its answer, always a refusal, says so, and a request
// that is not known is made anew. Between peers no program stands in between: there the request is made anew
// at once.
// Everything here: [connect_mutex].
#pragma once

#include "providers/verbs/connect.hpp"

namespace viaduct::verbs {

inline constexpr int64_t kFirstDoubtNs = 1'000'000'000;
inline constexpr int64_t kLongestDoubtNs = 8'000'000'000;

// A request has gone out.
void begin_doubt(ConnectOp&);
// It was answered, or counts no more.
void end_doubt(ConnectOp&);
// Its time has come.
void doubt(ConnectOp&, int64_t now);
// An event of the attempt's probe.
void advance_probe(ConnectOp&, const CmEvent&);

}  // namespace viaduct::verbs
