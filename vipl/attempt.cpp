// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/attempt.hpp"

#include "core/text/code_names.hpp"
#include "vipl/connection.hpp"
#include "vipl/stats.hpp"
#include "vipl/vi_state.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

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
    attempt.busy = true;
    attempt.op = nullptr;
    attempt.given_up.store(false);
    return VIP_SUCCESS;
}

Status run_attempt(Vi& vi, ConnectOp* op, Deadline deadline, ConnectResult* result) {
    ConnectResult local;
    if (result == nullptr) result = &local;
    const auto wanted = [&vi] { return !vi.attempt.given_up.load(); };
    (void)await_in_slices(*vi.nic, op, deadline, wanted, result);  // connect_finish says how it ended
    return vi.nic->ops->connect_finish(op, result);
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
    attempt.busy = true;
    *op = attempt.op;
    return Status::ok;
}

void give_up_attempt(Vi& vi) {
    Attempt& attempt = vi.attempt;
    ConnectOp* op = nullptr;
    {
        std::unique_lock lock(attempt.mutex);
        if (!attempt.active) return;
        attempt.given_up.store(true);
        // The thread that runs the attempt sees it within one slice and ends the attempt.
        attempt.changed.wait(lock, [&] { return !attempt.active || !attempt.busy; });
        if (!attempt.active) return;
        attempt.busy = true;
        op = attempt.op;
    }
    ConnectResult unused;
    (void)conclude_attempt(vi, vi.ops->connect_finish(op, &unused));  // given up: the result is known
}

void finish_left_attempt(Vi& vi) { give_up_attempt(vi); }

}  // namespace viaduct::vipl
