// SPDX-License-Identifier: BSD-2-Clause
#include "core/fair/pending_connections.hpp"

#include <algorithm>

namespace viaduct::fair {

void PendingConnections::add(uid_t user, uint64_t id) {
    if (users_[user].insert(id).second) ++size_;
}

void PendingConnections::remove(uid_t user, uint64_t id) {
    const auto u = users_.find(user);
    if (u == users_.end() || u->second.erase(id) == 0) return;
    --size_;
    if (u->second.empty()) users_.erase(u);
}

size_t PendingConnections::count_of(uid_t user) const {
    const auto u = users_.find(user);
    return u == users_.end() ? 0 : u->second.size();
}

uint64_t PendingConnections::oldest_of(uid_t user) const {
    const auto u = users_.find(user);
    return u == users_.end() ? 0 : *u->second.begin();
}

uint64_t PendingConnections::oldest_of_largest_user() const {
    const auto most = std::max_element(users_.begin(), users_.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    return most == users_.end() ? 0 : *most->second.begin();
}

uint64_t PendingConnections::to_evict_for(uid_t user) const {
    if (count_of(user) >= of_one_user_) return oldest_of(user);
    return size_ >= in_all_ ? oldest_of_largest_user() : 0;
}

}  // namespace viaduct::fair
