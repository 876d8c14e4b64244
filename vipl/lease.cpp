// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/lease.hpp"

#include "core/agent/link.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"
#include "vipl/policy.hpp"

namespace viaduct::vipl {
namespace {

// Taken at one time, by LeaseKind: bytes, regions, VIs, CQs.
constexpr uint64_t kPiece[4] = {uint64_t{256} << 20, 4096, 64, 16};

}  // namespace

void Leases::begin(Nic& nic, const uint64_t (&granted)[4]) {
    const std::lock_guard lock(mutex_);
    nic_ = &nic;
    for (int kind = 0; kind < 4; ++kind) {
        held_[kind] = granted[kind];
        used_[kind] = 0;
    }
}

// What the agent grants; 0: nothing.
uint64_t Leases::ask(kagent::LeaseKind kind, uint64_t amount, Deadline deadline) {
    if (make_known(*nic_, deadline) != Status::ok) return 0;
    kagent::Lease wanted;
    wanted.context_id = nic_->context_id;
    wanted.kind = kind;
    wanted.amount = static_cast<int64_t>(amount);
    Mail answer;
    kagent::Lease granted;
    if (nic_->library->link.call(Mail::of(kagent::Type::kLease, wanted), &answer, deadline) != Status::ok ||
        !answer.get(&granted) || granted.amount <= 0)
        return 0;
    return static_cast<uint64_t>(granted.amount);
}

// The agent is asked without the lock: threads that need no more, or send their own request, do not wait for this
// answer.
bool Leases::use(kagent::LeaseKind kind, uint64_t amount) {
    std::unique_lock lock(mutex_);
    uint64_t left = held_[kind] - used_[kind];
    if (amount > left) [[unlikely]] {
        const Deadline deadline = now_ns() + limit_ns(TimeLimit::agent_call);
        const uint64_t missing = amount - left;
        lock.unlock();
        // Near the end of the quota a whole piece may be too much where a part of it is not.
        uint64_t granted = missing < kPiece[kind] ? ask(kind, kPiece[kind], deadline) : 0;
        if (granted == 0 && now_ns() < deadline) granted = ask(kind, missing, deadline);
        lock.lock();
        held_[kind] += granted;
        left = held_[kind] - used_[kind];
        if (amount > left) return false;
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
