// SPDX-License-Identifier: BSD-2-Clause
// See ended.hpp.
#include "kagent/ended.hpp"

#include <algorithm>
#include <utility>

#include "kagent/agent.hpp"

namespace viaduct::kagent {

void EndedProcesses::keep(const Credentials& credentials, std::vector<std::byte> bytes, int64_t now) {
    if (keep_ns_ <= 0 || bytes.empty()) return;
    const auto same = [&](const Ended& e) { return e.known == credentials.known && e.uid == credentials.uid; };
    const bool enough = std::count_if(all_.begin(), all_.end(), same) >= static_cast<ptrdiff_t>(kMostOfOneUser);
    if (enough) all_.erase(std::find_if(all_.begin(), all_.end(), same));
    if (all_.size() >= kMost) all_.pop_front();
    all_.push_back({credentials.pid, credentials.uid, credentials.known, now, std::move(bytes)});
}

void EndedProcesses::expire(int64_t now) {
    while (!all_.empty() && now >= all_.front().at + keep_ns_) all_.pop_front();
}

std::vector<const Ended*> EndedProcesses::find(const std::function<bool(const Ended&)>& wanted) const {
    std::vector<const Ended*> found;
    for (const Ended& e : all_)
        if (wanted(e)) found.push_back(&e);
    return found;
}

}  // namespace viaduct::kagent
