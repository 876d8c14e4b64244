// SPDX-License-Identifier: BSD-2-Clause
// Whether the requests of a user have to wait for descriptors. Each answer that connects two processes carries
// descriptors, and they count in the user's quota until the processes have received them. Processes that make many
// connections at once are sent descriptors faster than they receive them. The next request must not be refused then:
// part of the quota is about to be free. So the user's requests stay in their sockets while descriptors are in flight
// to the user and little of the quota is left. They wait only as long as the processes go on receiving, for one of them
// may be stopped. Used by Server on the agent's one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>

#include "kagent/limits.hpp"

namespace viaduct::kagent {

class DescriptorThrottle {
public:
    // `count_in_flight` counts the descriptors that are in flight to a user, charges the user with them, and returns
    // their number.
    DescriptorThrottle(Limits& limits, std::function<uint64_t(uid_t)> count_in_flight)
        : limits_(limits), count_in_flight_(std::move(count_in_flight)) {}

    // Whether the user's requests stay where they are for now.
    bool must_wait(uid_t user, int64_t now);

private:
    struct Wait {
        uint64_t in_flight = 0;   // at the last count
        int64_t counted = 0;      // time of the last count
        int64_t until = 0;        // the end of the wait, unless some are received before
        uint64_t left_there = 0;  // not received until then: they are no longer waited for
        bool waits = false;
    };

    Limits& limits_;
    std::function<uint64_t(uid_t)> count_in_flight_;
    std::map<uid_t, Wait> waits_;
};

}  // namespace viaduct::kagent
