// SPDX-License-Identifier: BSD-2-Clause
// How connections end: what providers report (ViEvents), what the program does wrong, and VipDisconnect.
// Providers call in from any thread.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <optional>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/stats/process_stats.hpp"
#include "core/sync/cancellation.hpp"
#include "core/trace/probe.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/nic.hpp"
#include "vipl/stats.hpp"
#include "vipl/vi.hpp"
#include "vipl/vi_state.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr uint32_t kWhole = 0;
constexpr uint32_t kMarked = 2;
constexpr uint32_t kLooksWhenBroken = 100;  // for what has arrived at a connection that is broken
constexpr uint32_t kSettled = 3;  // mark_broken no longer succeeds: one error per entry to Error

AsyncError make_error(const Vi& vi, VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_ULONG opcode,
                      VIP_DESCRIPTOR* descriptor) {
    AsyncError error;
    error.record.NicHandle = vi.nic->public_handle();
    error.record.ViHandle = vi.public_handle();
    error.record.DescriptorPtr = descriptor;
    error.record.OpCode = opcode;
    error.record.ResourceCode = resource;
    error.record.ErrorCode = code;
    error.vi = &vi;
    error.life = vi.life.load();
    error.due = now_ns();
    if (code == VIP_ERROR_CONN_LOST) {
        // Late, and only to a program that still holds the connection (spec/compat Q14-Q17).
        error.latest =
            error.due + std::max(limit_ns(TimeLimit::peer_loss_delay), vi.nic->library->policy.peer_loss_delay_ns);
        error.due += vi.nic->library->policy.peer_loss_delay_ns;
        error.only_in_this_life = true;
    }
    return error;
}

void on_async_error(ViCore& core, VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_ULONG opcode,
                    VIP_DESCRIPTOR* descriptor) {
    const CancellationHeldOff inside_hot_calls;  // the provider may hold locks of its own
    Vi& vi = Vi::of(core);
    note_error(vi, code);
    BreakReason why;
    why.code = code;
    note_broken(vi, why, true);
    vi.nic->dispatcher->report(make_error(vi, code, resource, opcode, descriptor));
}

void on_settle(ViCore& core) { settle(Vi::of(core)); }

void on_wake(WorkQueue& q) {
    const CancellationHeldOff inside_hot_calls;
    const Nic& nic = *Vi::of(*q.vi).nic;
    q.vi->stats.count(ViCount::wakes);
    VIADUCT_PROBE2(wake, Vi::of(*q.vi).handle.load(std::memory_order_relaxed), q.is_receive);
    nic.ops->wake(nic.context);
}

void on_cq_overflow(WorkQueue& q) {
    Vi& vi = Vi::of(*q.vi);
    stats::process_stats.count(stats::ProcessCount::cq_overruns);
    VIADUCT_PROBE2(cq_overrun, vi.handle.load(std::memory_order_relaxed), q.is_receive);
    // A queue that is being flushed loses only the news of its end. Programs size their completion queues for
    // messages, not for 16 receives flushed at once, and die of any error callback (spec/compat Q3, Q4, Q13).
    if (vi.state() != VIP_STATE_CONNECTED) {
        return;
    }
    BreakReason why;
    why.code = VIP_ERROR_CATASTROPHIC;
    why.resource = VIP_RESOURCE_CQ;
    Cq* const full = q.is_receive ? vi.recv_cq : vi.send_cq;
    vi.full_cq.store(full);
    why.cause.kind = CauseKind::cq_full;
    why.cause.high = full->target.ring.capacity();
    vi.core.mark_broken(why);
}

enum class Entry { none, not_yet, done };

// Called with both queue locks. done: there is something to report. not_yet, only while `may_wait`: again, with the
// locks given up in between.
Entry enter_error(Vi& vi, BreakReason* why, bool may_wait) {
    ViCore& core = vi.core;
    if (core.broken.load(std::memory_order_acquire) != kMarked) return Entry::none;
    const bool by_program =
        core.reason.code == VIP_ERROR_POST_DESC || core.reason.code == VIP_ERROR_VI_OVERRUN;
    const auto next = next_state(vi.state(), by_program ? ViEvent::program_errs : ViEvent::connection_breaks);
    if (!next) {
        // Pending: the thread that ends the attempt settles it. Otherwise the connection is over already.
        if (vi.state() != VIP_STATE_CONNECT_PENDING) core.broken.store(kWhole);
        return Entry::none;
    }
    *why = core.reason;
    if (vi.state() == VIP_STATE_CONNECTED) {
        // What had arrived before counts, whatever has broken the connection.
        if (vi.ops->finish_traffic(core) == Status::not_done && may_wait) return Entry::not_yet;
        note_broken(vi, *why, false);
        vi.ops->disconnect(core);
    } else {
        note_broken(vi, *why, false);
    }
    vi.set_state(*next);
    core.broken.store(kSettled);
    core.stats.note_state();
    flush_queue(core.recv);
    flush_queue(core.send);
    return Entry::done;
}

// Between two looks at a connection that is about to end: the peer needs a processor, then time.
void let_others_run(uint32_t round) {
    constexpr uint32_t kYields = 64;
    constexpr timespec kPause{0, 100'000};
    round < kYields ? static_cast<void>(::sched_yield()) : static_cast<void>(::nanosleep(&kPause, nullptr));
}

}  // namespace

const ViEvents vi_events = {on_async_error, on_settle, on_wake, on_cq_overflow, on_descriptor_failed};

void settle(Vi& vi) {
    const CancellationHeldOff inside_hot_calls;
    BreakReason why;
    AsyncError error;
    std::optional<NicPin> pin;
    Entry entry = Entry::not_yet;
    for (uint32_t round = 0; entry == Entry::not_yet; ++round) {
        if (round != 0) let_others_run(round);
        const BothQueues both(vi.core);
        entry = enter_error(vi, &why, round < kLooksWhenBroken);
        if (entry != Entry::done) continue;
        // A thread of the provider's may be here with no call of the program around it. VipCloseNic takes
        // these locks, after it has let the handle die and before it waits for pins: it waits for this one,
        // or no thread is left to wake or to tell.
        pin.emplace(*vi.nic);
        error = make_error(vi, why.code, why.resource, why.opcode, why.descriptor);
        if (why.report) note_error(vi, why.code);
        if (why.resource == VIP_RESOURCE_CQ) error.record.CQHandle = vi.full_cq.load()->public_handle();
    }
    if (entry == Entry::none) return;
    stats::process_stats.count(stats::ProcessCount::connections_lost);
    VIADUCT_PROBE2(connection_broken, error.record.ViHandle, static_cast<int>(why.code));
    if (!*pin) return;
    Nic& nic = **pin;
    nic.ops->wake(nic.context);
    if (why.report) nic.dispatcher->report(error);
}

void break_by_program(Vi& vi, VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_ULONG opcode,
                      VIP_DESCRIPTOR* descriptor, const Cause& cause) {
    const CancellationHeldOff inside_hot_calls;
    const NicPin pin(vi.nic, vi.handle, vi.public_handle());
    if (!pin) return;
    BreakReason why;
    why.code = code;
    why.resource = resource;
    why.opcode = opcode;
    why.descriptor = descriptor;
    why.cause = cause;
    vi.core.mark_broken(why);
    if (vi.state() == VIP_STATE_CONNECT_PENDING) (void)give_up_attempt(vi);
    settle(vi);
}

void finish_traffic(Vi& vi, uintptr_t handle, Deadline until) {
    const CancellationHeldOff inside_hot_calls;
    for (uint32_t round = 0;; ++round) {
        {
            const BothQueues both(vi.core);
            if (vi.handle.load() != handle || vi.state() != VIP_STATE_CONNECTED) return;
            if (vi.ops->finish_traffic(vi.core) != Status::not_done) return;
        }
        if (now_ns() >= until) return;
        let_others_run(round);
    }
}

VIP_RETURN disconnect_vi(Vi& vi, VIP_VI_HANDLE handle) {
    const NicPin pin(vi.nic, vi.handle, handle);
    if (!pin) return refuse_vi(handle);
    finish_traffic(vi, reinterpret_cast<uintptr_t>(handle), now_ns() + limit_ns(TimeLimit::traffic));
    for (;;) {
        {
            const BothQueues both(vi.core);
            if (!vi.is(handle)) return refuse_vi(handle);
            ViCore& core = vi.core;
            if (vi.state() != VIP_STATE_CONNECT_PENDING) {
                if (vi.state() == VIP_STATE_CONNECTED) vi.ops->disconnect(core);
                vi.set_state(VIP_STATE_IDLE);
                core.stats.note_state();
                VIADUCT_PROBE1(disconnect, handle);
                core.broken.store(kWhole);
                vi.life.fetch_add(1);
                flush_queue(core.recv);
                flush_queue(core.send);
                break;
            }
        }
        if (!give_up_attempt(vi)) break;  // Idle once the call that runs it goes on
    }
    pin->ops->wake(pin->context);
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
