// SPDX-License-Identifier: BSD-2-Clause
// What belongs together in a record: begin and end of calls, the two ends of connections, a message that was posted
// here and fetched there.
#pragma once

#include <cstdint>
#include <vector>

#include "utils/viptrace/read.hpp"

namespace viaduct::viptrace {

struct Place {
    size_t process = 0, event = 0;
};

// A call from its beginning to its end.
struct Call {
    size_t process = 0, begin = 0, end = 0;
    bool ended = false;  // else the record ends before; then `ns` is until the process' last event
    int64_t ns = 0;
};

// A VI while it was connected.
struct Link {
    size_t process = 0;
    uint64_t vi = 0;
    size_t begin = 0, end = 0;  // events
    bool before = false;        // it was there when recording began: which message is the first is not known
    int peer = -1;              // number of the link at the other end; -1: not in the record
};

// From one end's post to the other end's fetching of the receive.
struct Message {
    Place sent, received;
    uint32_t bytes = 0;
    int64_t ns = 0;
};

struct Matched {
    std::vector<Call> calls;  // by process, in the order of their beginning
    std::vector<Link> links;
    std::vector<Message> messages;
    // The link of a VI at an event; -1: none.
    int link_of(size_t process, uint64_t vi, size_t event) const;
};

Matched match(const std::vector<Process>&);

}  // namespace viaduct::viptrace
