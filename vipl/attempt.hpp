// SPDX-License-Identifier: BSD-2-Clause
// The life of one connection attempt of a VI: begin, wait, leave and resume (peer requests), conclude, give
// up. The state machine's Connect-Pending lasts from begin to conclude.
#pragma once

#include <exception>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "viaduct/provider.hpp"
#include "vipl/nic.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {

// A call of the provider that has no memory fails as one that lacks another resource: the attempt, or the request, that
// it belongs to is ended by its caller all the same.
template <class Call>
Status in_short_memory(Call&& call) {
    try {
        return call();
    } catch (const std::exception&) {
        return Status::out_of_resources;
    }
}

// Idle -> Connect-Pending; INVALID_PARAMETER when the VI has died, INVALID_STATE when it is not Idle.
VIP_RETURN begin_attempt(Vi& vi, VIP_VI_HANDLE handle, bool peer);
// Waits until the attempt is decided, given up or late, and finishes it.
Status run_attempt(Vi& vi, ConnectOp* op, Deadline deadline, ConnectResult* result);
// -> Connected (ok) or back to Idle. Returns how the attempt really ended: `closed` when it was given up
// meanwhile.
Status conclude_attempt(Vi& vi, Status ended);

// The agent keeps the time of a request and answers at its deadline; a little later the caller stops waiting for that
// answer.
inline Deadline agent_deadline(Deadline deadline) {
    return deadline == kNever ? kNever : deadline + limit_ns(TimeLimit::agent_late);
}

// An agent that has not answered by then, some time after the deadline, is stalled.
inline Deadline answer_due(Deadline deadline) {
    return deadline == kNever ? kNever : deadline + limit_ns(TimeLimit::agent_starved);
}

// Leaves a peer request between two calls of the program.
void leave_attempt(Vi& vi, ConnectOp* op);
// Resumes it. not_done: another thread works on it; invalid_state: there is none. With `wait`, waits for that other
// thread.
Status resume_attempt(Vi& vi, bool wait, ConnectOp** op);
// Polls the attempt, as VipConnectPeerDone does, and leaves it. A request whose agent has ended is sent to the next
// agent. Waits only for a moment for another thread that works on the attempt; a thread that waits for the result sends
// the request again by itself.
void renew_attempt(Vi& vi);

// Waits in slices that grow to a tenth of a second, as long as `wanted` says so.
template <class Wanted>
Status await_in_slices(Nic& nic, ConnectOp* op, Deadline deadline, Wanted&& wanted, ConnectResult* result) {
    constexpr int64_t kShortest = 5'000'000;
    constexpr int64_t kLongest = 100'000'000;
    for (int64_t slice = kShortest;; slice = std::min(slice * 2, kLongest)) {
        const int64_t now = now_ns();
        const Status status = nic.ops->connect_await(op, std::min(deadline, now + slice), result);
        if (status != Status::not_done || !wanted() || now_ns() >= deadline) return status;
    }
}

}  // namespace viaduct::vipl
