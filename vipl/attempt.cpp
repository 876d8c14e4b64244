// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/attempt.hpp"

#include "core/clock/clock.hpp"
#include "core/text/code_names.hpp"
#include "vipl/connection.hpp"
#include "vipl/sleeping_call.hpp"
#include "vipl/stats.hpp"
#include "vipl/vi_state.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// Attempt::mutex held.
void enter(Attempt& attempt, bool until_decided) {
    attempt.busy = true;
    attempt.awaited = until_decided;
    ++attempt.turn;
}

}  // namespace

VIP_RETURN begin_attempt(Vi& vi, VIP_VI_HANDLE handle, bool peer) {
    Attempt& attempt = vi.attempt;
    const std::lock_guard lock(attempt.mutex);
    const BothQueues both(vi.core);
    if (!vi.is(handle)) return refuse_vi(handle);
    const auto next = next_state(vi.state(), ViEvent::attempt_begins);
    if (!next)
        return refuse(VIP_INVALID_STATE, "VipDisconnect brings it to Idle", "the VI is %s, it must be Idle to connect",
                      name_of_state(vi.state()));
    vi.set_state(*next);
    vi.core.stats.note_state();
    vi.core.broken.store(0);
    for (ViCore::Known& known : vi.core.causes) known = {};
    attempt.active = true;
    attempt.peer = peer;
    enter(attempt, !peer);
    attempt.op = nullptr;
    attempt.given_up.store(false);
    if (peer) vi.nic->library->peer_requests.fetch_add(1);
    return VIP_SUCCESS;
}

Status run_attempt(Vi& vi, ConnectOp* op, Deadline deadline, ConnectResult* result) {
    ConnectResult local;
    if (result == nullptr) result = &local;
    const auto wanted = [&vi] { return !vi.attempt.given_up.load(); };
    // connect_finish says how it ended, but not that memory was short.
    const Status open = in_short_memory([&] { return await_in_slices(*vi.nic, op, deadline, wanted, result); });
    const Status ended = in_short_memory([&] { return vi.nic->ops->connect_finish(op, result); });
    return ended != Status::ok && open == Status::out_of_resources ? open : ended;
}

Status conclude_attempt(Vi& vi, Status ended) {
    Attempt& attempt = vi.attempt;
    {
        const std::lock_guard lock(attempt.mutex);
        const BothQueues both(vi.core);
        ViCore& core = vi.core;
        if (ended == Status::ok && attempt.given_up.load()) {
            vi.ops->disconnect(core);  // it had just succeeded, but the attempt was given up
            ended = Status::closed;
        } else if (attempt.given_up.load()) {
            ended = Status::closed;
        }
        const auto event = ended == Status::ok ? ViEvent::attempt_succeeds : ViEvent::attempt_fails;
        vi.set_state(*next_state(vi.state(), event));
        note_attempt(vi, ended == Status::ok);
        if (ended == Status::ok) vi.ops->start(core);
        if (attempt.peer) vi.nic->library->peer_requests.fetch_sub(1);
        attempt.active = false;
        attempt.busy = false;
        attempt.op = nullptr;
    }
    attempt.changed.notify_all();
    settle_if_broken(vi);  // marked while the attempt was under way
    return ended;
}

void leave_attempt(Vi& vi, ConnectOp* op) {
    Attempt& attempt = vi.attempt;
    {
        const std::lock_guard lock(attempt.mutex);
        attempt.op = op;
        attempt.busy = false;
    }
    attempt.changed.notify_all();
}

Status resume_attempt(Vi& vi, bool wait, ConnectOp** op) {
    Attempt& attempt = vi.attempt;
    std::unique_lock lock(attempt.mutex);
    if (wait) attempt.changed.wait(lock, [&] { return !attempt.active || !attempt.busy; });
    if (!attempt.active || !attempt.peer) return Status::invalid_state;
    if (attempt.busy) return Status::not_done;
    enter(attempt, wait);
    *op = attempt.op;
    return Status::ok;
}

void renew_attempt(Vi& vi) {
    Attempt& attempt = vi.attempt;
    ConnectOp* op = nullptr;
    {
        std::unique_lock lock(attempt.mutex);
        // A thread that has come later than this one knows of the agent's end.
        const uint32_t inside = attempt.turn;
        attempt.changed.wait(lock, [&] {
            return !attempt.active || !attempt.busy || attempt.awaited || attempt.turn != inside;
        });
        if (!attempt.active || attempt.busy) return;
        enter(attempt, false);  // the VI, its endpoint and its NIC stay until it is left
        op = attempt.op;
    }
    ConnectResult unused;  // what is decided is told again to the call that asks, which goes on from here
    (void)in_short_memory([&] { return vi.ops->connect_await(op, now_ns(), &unused); });
    leave_attempt(vi, op);
}

bool give_up_attempt(Vi& vi) {
    Attempt& attempt = vi.attempt;
    ConnectOp* op = nullptr;
    {
        std::unique_lock lock(attempt.mutex);
        if (!attempt.active) return true;
        attempt.given_up.store(true);
        if (has_interrupted_attempt(vi)) return false;
        // The thread that runs the attempt sees it within one slice and ends the attempt.
        attempt.changed.wait(lock, [&] { return !attempt.active || !attempt.busy; });
        if (!attempt.active) return true;
        enter(attempt, true);
        op = attempt.op;
    }
    ConnectResult unused;  // given up: the result is known
    (void)conclude_attempt(vi, in_short_memory([&] { return vi.ops->connect_finish(op, &unused); }));
    return true;
}

void finish_left_attempt(Vi& vi) { (void)give_up_attempt(vi); }

}  // namespace viaduct::vipl
