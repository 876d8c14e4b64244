// SPDX-License-Identifier: BSD-2-Clause
// Sets of items by user; see silent_ones.hpp.
#include "core/fair/silent_ones.hpp"

#include <algorithm>

namespace viaduct::fair {

void SilentOnes::add(uid_t user, uint64_t item) {
    if (users_[user].insert(item).second) ++size_;
}

void SilentOnes::remove(uid_t user, uint64_t item) {
    const auto u = users_.find(user);
    if (u == users_.end() || u->second.erase(item) == 0) return;
    --size_;
    if (u->second.empty()) users_.erase(u);
}

size_t SilentOnes::of(uid_t user) const {
    const auto u = users_.find(user);
    return u == users_.end() ? 0 : u->second.size();
}

uint64_t SilentOnes::oldest_of(uid_t user) const {
    const auto u = users_.find(user);
    return u == users_.end() ? 0 : *u->second.begin();
}

uint64_t SilentOnes::oldest_of_most() const {
    const auto most = std::max_element(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
    });
    return most == users_.end() ? 0 : *most->second.begin();
}

uint64_t SilentOnes::in_the_way_of(uid_t user) const {
    if (of(user) >= of_one_user_) return oldest_of(user);
    return size_ >= in_all_ ? oldest_of_most() : 0;
}

}  // namespace viaduct::fair
