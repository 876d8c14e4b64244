// SPDX-License-Identifier: BSD-2-Clause
// Connections to a server on which no hello has come yet, by user and age. A user has a limit of its own: the
// connection above it closes that user's oldest one. All users together have another: the connection above it closes
// the oldest one of the user that has the most. Used by one thread of the server; no lock.
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
    // The item that has to be closed before the user may have another one; 0: none.
    uint64_t in_the_way_of(uid_t user) const;
    // The user's oldest item; 0: none.
    uint64_t oldest_of(uid_t user) const;
    // The oldest item of the user that has the most; 0: there are no items.
    uint64_t oldest_of_most() const;

private:
    size_t of_one_user_, in_all_, size_ = 0;
    std::map<uid_t, std::set<uint64_t>> users_;  // users without any are not kept
};

}  // namespace viaduct::fair
