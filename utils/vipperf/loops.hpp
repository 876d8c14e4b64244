// SPDX-License-Identifier: BSD-2-Clause
// The loops that are measured. Both ends call measure() with the same Run; the client leads.
#pragma once

#include <vector>

#include "utils/vipperf/bundle.hpp"

namespace viaduct::vipperf {

struct Measured {
    double ns = 0;                // the whole, without warm-up
    double share = 1;             // of a processor that this thread had meanwhile
    std::vector<double> each_ns;  // of a stamped latency run: one round trip (RDMA read: one read) each
    double peak_ns = 0;  // bandwidth: ns per message in the best tenth; 0: tenths are too short to tell
};

Measured measure(Bundle&, const Run&, bool leader);

// Ticks of the cheapest clock there is; what one is worth is found out around each run.
uint64_t ticks();

// latency.cpp, stream.cpp: `count` messages each way, one way, or both ways at once.
void latency_loop(Bundle&, const Run&, bool leader, uint64_t count, std::vector<uint64_t>* stamps);
void stream_loop(Bundle&, const Run&, bool leader, uint64_t count, std::vector<uint64_t>* stamps);

// Calls `body` with the completion as a constant.
template <class Body>
void with_completion(Completion how, Body&& body) {
    switch (how) {
        case Completion::queue:
            return body.template operator()<Completion::queue>();
        case Completion::cq:
            return body.template operator()<Completion::cq>();
        case Completion::wait:
            return body.template operator()<Completion::wait>();
        case Completion::cq_wait:
            return body.template operator()<Completion::cq_wait>();
    }
}

}  // namespace viaduct::vipperf
