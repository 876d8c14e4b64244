// SPDX-License-Identifier: BSD-2-Clause
// Which user a shared loop serves next: the one that has had the least of its time, however many sessions it
// has. Time that a user did not need is not saved up. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

namespace viaduct::fair {

class Turns {
public:
    struct Turn {
        uid_t user = 0;
        uint64_t item = 0;
        uint32_t events = 0;
    };

    // Something of this user's waits to be served. Ready twice is ready once, with the events of both.
    void ready(uid_t user, uint64_t item, uint32_t events);
    bool empty() const { return items_.empty(); }
    // The user that has had the least, and the oldest of its work.
    std::optional<Turn> next();
    // Charges the user with the time that the turn has taken.
    void charge(uid_t user, int64_t ns);

private:
    struct User {
        int64_t spent = 0;
        std::deque<uint64_t> waiting;
    };

    std::map<uid_t, User> users_;  // those that wait, and those that have had more than `begin_`
    std::unordered_map<uint64_t, uint32_t> items_;  // that wait: their events
    int64_t begin_ = 0;  // what the last one to be served had had: newcomers begin with it
};

}  // namespace viaduct::fair
