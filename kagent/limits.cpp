// SPDX-License-Identifier: BSD-2-Clause
// Per-user accounts of the agent; see limits.hpp.
#include "kagent/limits.hpp"

#include <algorithm>

#include "core/fair/share.hpp"

namespace viaduct::kagent {

namespace {
constexpr size_t at(Quota q) { return static_cast<size_t>(q); }

constexpr uint64_t kUnreadBytes = uint64_t{8} << 20;
}  // namespace

const char* quota_name(Quota q) {
    switch (q) {
        case Quota::bytes:
            return "registered bytes";
        case Quota::regions:
            return "regions";
        case Quota::vis:
            return "VIs";
        case Quota::cqs:
            return "completion queues";
        case Quota::sessions:
            return "sessions";
        case Quota::contexts:
            return "open NICs";
        case Quota::outstanding:
            return "outstanding connection requests";
        case Quota::sockets:
            return "sockets";
        case Quota::descriptors:
            return "descriptors";
        case Quota::unread:
            return "bytes of unread answers";
        case Quota::count:
            break;
    }
    return "?";
}

Limits::Limits(const UserLimits& l) : capacity_(l.descriptors_of_all) {
    limits_[at(Quota::bytes)] = l.registered_bytes;
    limits_[at(Quota::regions)] = l.regions;
    limits_[at(Quota::vis)] = l.vis;
    limits_[at(Quota::cqs)] = l.cqs;
    limits_[at(Quota::sessions)] = l.sessions;
    limits_[at(Quota::contexts)] = l.contexts;
    limits_[at(Quota::outstanding)] = l.outstanding;
    limits_[at(Quota::sockets)] = l.sessions + kSilentOfOneUser;
    limits_[at(Quota::descriptors)] = std::min(l.descriptors, fair::left(capacity_, 0, 0));
    limits_[at(Quota::unread)] = kUnreadBytes;
}

void Limits::correct(uid_t user, Quota q, uint64_t* charged, uint64_t now) {
    if (now > *charged) take_anyway(user, q, now - *charged);
    if (now < *charged) give(user, q, *charged - now);
    *charged = now;
}

uint64_t Limits::limit(Quota q) const { return limits_[at(q)]; }

uint64_t Limits::used(uid_t user, Quota q) const {
    const auto u = used_.find(user);
    return u == used_.end() ? 0 : u->second[at(q)];
}

uint64_t Limits::left(uid_t user, Quota q) const {
    const uint64_t have = used(user, q);
    const uint64_t own = have >= limit(q) ? 0 : limit(q) - have;
    return q == Quota::descriptors ? std::min(own, fair::left(capacity_, descriptors_, have)) : own;
}

bool Limits::allows(uid_t user, Quota q, uint64_t amount) {
    if (amount > left(user, q) && q == Quota::descriptors && recount_) recount_(user);
    return amount <= left(user, q);
}

bool Limits::take(uid_t user, Quota q, uint64_t amount) {
    if (!allows(user, q, amount)) return false;
    take_anyway(user, q, amount);
    return true;
}

void Limits::take_anyway(uid_t user, Quota q, uint64_t amount) {
    uint64_t& have = used_[user][at(q)];
    have = amount > UINT64_MAX - have ? UINT64_MAX : have + amount;
    if (q == Quota::descriptors) descriptors_ += amount;
}

void Limits::give(uid_t user, Quota q, uint64_t amount) {
    const auto u = used_.find(user);
    if (u == used_.end()) return;
    uint64_t& have = u->second[at(q)];
    const uint64_t back = std::min(have, amount);
    have -= back;
    if (q == Quota::descriptors) descriptors_ -= back;
    if (std::all_of(u->second.begin(), u->second.end(), [](uint64_t n) { return n == 0; })) used_.erase(u);
}

}  // namespace viaduct::kagent
