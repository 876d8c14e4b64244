// SPDX-License-Identifier: BSD-2-Clause
// Connections to a server that have not said who they are, by user and age. Each user may have some; where
// one of his is too many his own oldest one goes, where all together are too many the oldest one of the user
// who has most. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace viaduct::fair {

class SilentOnes {
public:
    SilentOnes(size_t of_one_user, size_t in_all) : of_one_user_(of_one_user), in_all_(in_all) {}

    // Items count up: an older one has a smaller number, which is never 0.
    void add(uid_t user, uint64_t item);
    void remove(uid_t user, uint64_t item);

    size_t size() const { return size_; }
    size_t of(uid_t user) const;
    // The one that must go before another one of this user comes; 0: none.
    uint64_t in_the_way_of(uid_t user) const;
    // 0: he has none.
    uint64_t oldest_of(uid_t user) const;
    // Of the user who has most; 0: nobody is silent.
    uint64_t oldest_of_most() const;

private:
    size_t of_one_user_, in_all_, size_ = 0;
    std::map<uid_t, std::set<uint64_t>> users_;  // users without any are not kept
};

}  // namespace viaduct::fair
