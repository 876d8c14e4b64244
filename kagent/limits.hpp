// SPDX-License-Identifier: BSD-2-Clause
// Counts what each user has, and says no when it is enough. Used by Agent on the agent's one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "kagent/settings.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct::kagent {

// How many sockets of a user may be without a hello, besides the sessions: processes that are just starting.
inline constexpr uint64_t kSilentOfOneUser = 256;

enum class Quota : uint32_t {
    bytes = kLeaseBytes,
    regions = kLeaseRegions,
    vis = kLeaseVis,
    cqs = kLeaseCqs,
    sessions,
    contexts,
    outstanding,
    sockets,      // sessions, and those that have not said hello yet
    descriptors,  // files the agent holds for them, or has sent to them and they have not taken
    unread,       // bytes of answers that wait because they do not take them
    count
};

const char* quota_name(Quota);

class Limits {
public:
    explicit Limits(const UserLimits& limits);

    // What a user may have while no other user has anything.
    uint64_t limit(Quota) const;
    uint64_t used(uid_t user, Quota) const;
    uint64_t left(uid_t user, Quota) const;
    // Whether the user may have so much more. Descriptors are counted anew before any is refused.
    [[nodiscard]] bool allows(uid_t user, Quota, uint64_t amount);
    // All or nothing, of what is allowed.
    [[nodiscard]] bool take(uid_t user, Quota, uint64_t amount);
    // What exists already and cannot be refused any more (a client that re-attaches).
    void take_anyway(uid_t user, Quota, uint64_t amount);
    void give(uid_t user, Quota, uint64_t amount);
    // One session of the user has `now` of it; *charged is what was charged for it before, and is updated.
    void correct(uid_t user, Quota, uint64_t* charged, uint64_t now);

    // Counts anew what was charged to a user for descriptors that have been sent to it: no event says when it takes
    // them.
    void recount_by(std::function<void(uid_t)> recount) { recount_ = std::move(recount); }

private:
    using Counts = std::array<uint64_t, static_cast<size_t>(Quota::count)>;
    Counts limits_;
    uint64_t capacity_;             // descriptors of all users together
    uint64_t descriptors_ = 0;      // that all users have
    std::function<void(uid_t)> recount_;
    std::map<uid_t, Counts> used_;  // users without anything are not kept
};

}  // namespace viaduct::kagent
