// SPDX-License-Identifier: BSD-2-Clause
// Which user numbers name one user. In a user namespace that has no numbers for some users, the kernel shows
// all of these as one (the overflow uid, 65534): two different users must not count as one.
#pragma once

#include <sys/types.h>

#include <string>

namespace viaduct::kagent {

class Users {
public:
    // Of our own user namespace.
    Users();
    // By the text of a uid_map and of overflowuid.
    Users(const std::string& map, const std::string& overflow);
    // The number can be of one user only.
    bool knows(uid_t uid) const { return uid != overflow_; }
    // The same, or the kernel says that the process at the other end of the socket is our own user's.
    bool knows(int socket, uid_t uid) const;

private:
    uid_t overflow_ = static_cast<uid_t>(-1);  // that number: every user has one of his own
};

}  // namespace viaduct::kagent
