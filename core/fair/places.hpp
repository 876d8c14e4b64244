// SPDX-License-Identifier: BSD-2-Clause
// Places of one kind that a daemon has for all users, and how many of them each user has. The daemon's own user may
// have all that are free, another one a fair share (share.hpp). One thread; no lock.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/fair/share.hpp"

namespace viaduct::fair {

class Places {
public:
    explicit Places(size_t capacity, uid_t own_user = ::geteuid()) : capacity_(capacity), own_user_(own_user) {}

    // Whether the user may have one more.
    bool has_room(uid_t user) const {
        return user == own_user_ ? used_ < capacity_ : left(capacity_, used_, of(user)) != 0;
    }
    // Changes how many the user has; no check.
    void change(uid_t user, ptrdiff_t by) {
        if (by == 0) return;
        const auto his = users_.try_emplace(user, 0).first;
        his->second += static_cast<size_t>(by);
        used_ += static_cast<size_t>(by);
        if (his->second == 0) users_.erase(his);
    }
    size_t of(uid_t user) const {
        const auto his = users_.find(user);
        return his == users_.end() ? 0 : his->second;
    }
    size_t used() const { return used_; }

private:
    const size_t capacity_;
    const uid_t own_user_;
    size_t used_ = 0;
    std::map<uid_t, size_t> users_;  // users without any are not kept
};

}  // namespace viaduct::fair
