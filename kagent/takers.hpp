// SPDX-License-Identifier: BSD-2-Clause
// Whether what a user asks for has to wait. Each answer that connects two processes brings files, and those
// count in the user's quota of descriptors until they are taken. Processes that connect many times at once
// are sent them faster than they take them: to refuse then what needs one more would be to refuse a user for
// what he is about to give back. So his requests stay in their sockets while files are under way to him and
// little of his quota is left; not for longer than his processes go on taking, for one of them may stand
// still. Used by Server on the agent's one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>

#include "kagent/limits.hpp"

namespace viaduct::kagent {

class Takers {
public:
    // `count_flying` counts anew what is under way to a user, charges it to him and says how much it is.
    Takers(Limits& limits, std::function<uint64_t(uid_t)> count_flying)
        : limits_(limits), count_flying_(std::move(count_flying)) {}

    bool are_waited_for(uid_t user, int64_t now);

private:
    struct Wait {
        uint64_t flying = 0;      // at the last count
        int64_t counted = 0;      // when
        int64_t until = 0;        // unless some are taken before
        uint64_t left_there = 0;  // they were not taken in that time, so that they are not waited for
        bool waits = false;
    };

    Limits& limits_;
    std::function<uint64_t(uid_t)> count_flying_;
    std::map<uid_t, Wait> waits_;
};

}  // namespace viaduct::kagent
