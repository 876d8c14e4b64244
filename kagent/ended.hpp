// SPDX-License-Identifier: BSD-2-Clause
// What is kept of processes that have ended after calls had failed: whose they were, and the failures in words. For
// tools, for a while, and so many of each user at most. Used by Agent on the agent's one thread; time is an argument.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace viaduct::kagent {

struct Credentials;

struct Ended {
    pid_t pid = 0;
    uid_t uid = 0;
    bool known = true;  // as in Credentials
    int64_t at = 0;
    std::vector<std::byte> bytes;  // stats::failures_part_of
};

class EndedProcesses {
public:
    static constexpr size_t kMostOfOneUser = 32;
    static constexpr size_t kMost = 256;

    // 0: nothing is kept.
    explicit EndedProcesses(int64_t keep_ns) : keep_ns_(keep_ns) {}

    void keep(const Credentials& credentials, std::vector<std::byte> bytes, int64_t now);
    // Removes what is too old.
    void expire(int64_t now);
    // When the last of them will be removed; 0: there is none.
    int64_t last_until() const { return all_.empty() ? 0 : all_.back().at + keep_ns_; }
    bool keeps_any() const { return keep_ns_ > 0; }
    // Those that are wanted, the oldest first.
    std::vector<const Ended*> find(const std::function<bool(const Ended&)>& wanted) const;

private:
    int64_t keep_ns_;
    std::deque<Ended> all_;  // the oldest first
};

}  // namespace viaduct::kagent
