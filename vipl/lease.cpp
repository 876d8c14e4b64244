// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/lease.hpp"

#include "core/agent/link.hpp"
#include "core/clock/clock.hpp"
#include "vipl/policy.hpp"

namespace viaduct::vipl {
namespace {

// Taken at one time, by LeaseKind: bytes, regions, VIs, CQs.
constexpr uint64_t kPiece[4] = {uint64_t{256} << 20, 4096, 64, 16};

}  // namespace

void Leases::begin(AgentLink* link, uint64_t context_id, const uint64_t (&granted)[4]) {
    const std::lock_guard lock(mutex_);
    link_ = link;
    context_id_ = context_id;
    for (int kind = 0; kind < 4; ++kind) {
        held_[kind] = granted[kind];
        used_[kind] = 0;
    }
}

bool Leases::ask(kagent::LeaseKind kind, uint64_t amount) {
    kagent::Lease wish;
    wish.context_id = context_id_;
    wish.kind = kind;
    wish.amount = static_cast<int64_t>(amount);
    Mail answer;
    kagent::Lease granted;
    if (link_->call(Mail::of(kagent::Type::kLease, wish), &answer, now_ns() + kAgentPatience) != Status::ok ||
        !answer.get(&granted) || granted.amount <= 0)
        return false;
    held_[kind] += static_cast<uint64_t>(granted.amount);
    return true;
}

bool Leases::use(kagent::LeaseKind kind, uint64_t amount) {
    const std::lock_guard lock(mutex_);
    const uint64_t left = held_[kind] - used_[kind];
    if (amount > left) {
        const uint64_t missing = amount - left;
        // Near the end of the quota a whole piece may be too much where a part of it is not.
        const bool granted = (missing < kPiece[kind] && ask(kind, kPiece[kind])) || ask(kind, missing);
        if (!granted || amount > held_[kind] - used_[kind]) return false;
    }
    used_[kind] += amount;
    return true;
}

void Leases::give_back(kagent::LeaseKind kind, uint64_t amount) {
    const std::lock_guard lock(mutex_);
    used_[kind] -= amount;
}

void Leases::held(uint64_t (&out)[4]) const {
    for (int kind = 0; kind < 4; ++kind) out[kind] = held_[kind];
}

}  // namespace viaduct::vipl
