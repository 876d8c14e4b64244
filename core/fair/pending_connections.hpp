// SPDX-License-Identifier: BSD-2-Clause
// Ids of connections that are not served yet, by user and age. It chooses which one the server must close: at a user's
// limit, that user's oldest; at the limit of all, the oldest of the user with the most (ties: lowest uid). It closes
// nothing. One thread; no lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace viaduct::fair {

class PendingConnections {
public:
    PendingConnections(size_t of_one_user, size_t in_all) : of_one_user_(of_one_user), in_all_(in_all) {}

    // Ids count up: an older connection has a smaller one. 0 is no id.
    void add(uid_t user, uint64_t id);
    void remove(uid_t user, uint64_t id);

    size_t size() const { return size_; }
    size_t count_of(uid_t user) const;
    // The id to close before this user may add one; 0: none. The caller must remove() it before it asks again.
    uint64_t to_evict_for(uid_t user) const;
    // The user's oldest id; 0: none.
    uint64_t oldest_of(uid_t user) const;
    // The oldest id of the user that has the most; 0: there are no ids.
    uint64_t oldest_of_largest_user() const;

private:
    size_t of_one_user_, in_all_, size_ = 0;
    std::map<uid_t, std::set<uint64_t>> users_;  // users without any are not kept
};

}  // namespace viaduct::fair
