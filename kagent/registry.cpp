// SPDX-License-Identifier: BSD-2-Clause
// Contexts and their leases; see registry.hpp.
#include "kagent/registry.hpp"

#include <algorithm>
#include <utility>

namespace viaduct::kagent {

namespace {

// So much a context gets at once, so that small programs never ask again.
constexpr std::array<uint64_t, kLeaseKinds> kFirstLease = {uint64_t{256} << 20, 1024, 32, 32};

constexpr Quota quota_of(size_t kind) { return static_cast<Quota>(kind); }

}  // namespace

Status Registry::open(Context& context) {
    for (size_t kind = 0; kind < kLeaseKinds; ++kind) {
        if (context.held[kind] > limits_.limit(quota_of(kind))) return Status::out_of_resources;
    }
    if (!limits_.allows(context.user, Quota::descriptors, context.descriptors.size()) ||
        !limits_.take(context.user, Quota::contexts, 1))
        return Status::out_of_resources;
    limits_.take_anyway(context.user, Quota::descriptors, context.descriptors.size());
    const bool reattached =
        std::any_of(context.held.begin(), context.held.end(), [](uint64_t n) { return n != 0; });
    for (size_t kind = 0; kind < kLeaseKinds; ++kind) {
        if (!reattached)
            context.held[kind] = std::min(kFirstLease[kind], limits_.left(context.user, quota_of(kind)));
        limits_.take_anyway(context.user, quota_of(kind), context.held[kind]);
    }
    const uint64_t id = context.id;
    by_session_.emplace(context.session, id);
    contexts_.emplace(id, std::move(context));
    return Status::ok;
}

std::vector<Fd> Registry::close(uint64_t id) {
    const auto it = contexts_.find(id);
    if (it == contexts_.end()) return {};
    Context& c = it->second;
    limits_.give(c.user, Quota::contexts, 1);
    limits_.give(c.user, Quota::descriptors, c.descriptors.size());
    for (size_t kind = 0; kind < kLeaseKinds; ++kind) limits_.give(c.user, quota_of(kind), c.held[kind]);
    std::vector<Fd> files = std::move(c.descriptors);
    by_session_.erase({c.session, id});
    contexts_.erase(it);
    return files;
}

Context* Registry::find(uint64_t id) {
    const auto it = contexts_.find(id);
    return it == contexts_.end() ? nullptr : &it->second;
}

Context* Registry::find(uint64_t id, uint64_t session) {
    Context* c = find(id);
    return c != nullptr && c->session == session ? c : nullptr;
}

std::vector<uint64_t> Registry::of_session(uint64_t session) const {
    std::vector<uint64_t> ids;
    for (auto it = by_session_.lower_bound({session, 0}); it != by_session_.end() && it->first == session;
         ++it)
        ids.push_back(it->second);
    return ids;
}

Status Registry::lease(Context& context, LeaseKind kind, int64_t amount) {
    uint64_t& held = context.held[kind];
    if (amount >= 0) {
        const auto more = static_cast<uint64_t>(amount);
        // What it holds is part of what its user has, and that stays below the limit.
        if (!limits_.take(context.user, quota_of(kind), more)) return Status::out_of_resources;
        held += more;
        return Status::ok;
    }
    const uint64_t back = uint64_t{0} - static_cast<uint64_t>(amount);
    if (back > held) return Status::invalid;
    limits_.give(context.user, quota_of(kind), back);
    held -= back;
    return Status::ok;
}

}  // namespace viaduct::kagent
