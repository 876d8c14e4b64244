// SPDX-License-Identifier: BSD-2-Clause
// Fair queueing by user; see turns.hpp. There are few users with something to do at a time, so they are
// searched.
#include "core/fair/turns.hpp"

#include <algorithm>

namespace viaduct::fair {

void Turns::ready(uid_t user, uint64_t item, uint32_t events) {
    const auto [it, is_new] = items_.try_emplace(item, events);
    if (!is_new) {
        it->second |= events;
        return;
    }
    User& u = users_[user];
    if (u.waiting.empty()) u.spent = std::max(u.spent, begin_);
    u.waiting.push_back(item);
}

std::optional<Turns::Turn> Turns::next() {
    auto least = users_.end();
    for (auto it = users_.begin(); it != users_.end();) {
        if (it->second.waiting.empty()) {
            it = it->second.spent <= begin_ ? users_.erase(it) : std::next(it);
            continue;
        }
        if (least == users_.end() || it->second.spent < least->second.spent) least = it;
        ++it;
    }
    if (least == users_.end()) return std::nullopt;
    User& u = least->second;
    begin_ = std::max(begin_, u.spent);
    Turn t{least->first, u.waiting.front(), 0};
    u.waiting.pop_front();
    const auto item = items_.find(t.item);
    t.events = item->second;
    items_.erase(item);
    return t;
}

void Turns::charge(uid_t user, int64_t ns) {
    if (const auto u = users_.find(user); u != users_.end()) u->second.spent += std::max<int64_t>(ns, 1);
}

}  // namespace viaduct::fair
