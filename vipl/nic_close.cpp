// SPDX-License-Identifier: BSD-2-Clause
// The ends of a NIC: closed by the program, or failed. Part of nic.hpp.
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/sync/futex.hpp"
#include "vipl/attempt.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/library.hpp"
#include "vipl/memory.hpp"
#include "vipl/nic.hpp"
#include "vipl/policy.hpp"
#include "vipl/sleeping_call.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// A thread may be about to sleep: waiters are woken until no call is inside but `own` ones, which this thread has
// interrupted.
void wait_until_unused(Nic& nic, uint32_t own) {
    for (uint32_t users = nic.users.load(); users > own; users = nic.users.load()) {
        nic.ops->wake(nic.context);
        futex_wait(nic.users, users, 2'000'000, false);
    }
}

// The last one first: another thread may destroy one meanwhile.
template <class Visit>
void for_each_cq(Nic& nic, Visit&& visit) {
    size_t left;
    {
        const std::lock_guard lock(nic.mutex);
        left = nic.cqs.size();
    }
    while (left-- != 0) {
        Cq* cq;
        {
            const std::lock_guard lock(nic.mutex);
            if (left >= nic.cqs.size()) continue;
            cq = nic.cqs[left];
        }
        visit(*cq);
    }
}

}  // namespace

// What can be undone without the agent.
void take_apart(Nic& nic) {
    if (nic.own_group.group != nullptr) remove_group(nic, nic.own_group);
    free_all_memory(nic);
    if (nic.context != nullptr) nic.ops->close(std::exchange(nic.context, nullptr));
    nic.regions.reset();
    nic.dispatcher.reset();
    nic.vis.clear();
    nic.free_slots.clear();
    nic.vi_count = 0;
    nic.cqs.clear();
    nic.names_started = false;
    nic.unknown_to_agent = false;
    nic.gives_way = true;
    nic.library->nics.give_back(&nic);
}

// No thread waits for the answer: the next request to the agent comes behind it on the same socket, an agent
// that stands still must not hold up the end of a program, and this NIC is not reported to a new agent.
void tell_agent_closed(Nic& nic) {
    AgentLink& link = nic.library->link;
    kagent::ContextRef which;
    which.context_id = nic.context_id;
    (void)in_short_memory([&] {
        uint32_t ticket = 0;
        const Status sent = link.start(Mail::of(kagent::Type::kCloseNic, which), &ticket, kOnlyConnected);
        if (sent == Status::ok) link.abandon(ticket);
        return sent;
    });
}

VIP_RETURN close_nic(VIP_NIC_HANDLE handle) {
    auto* found = static_cast<Nic*>(handle_table.find(handle, HandleKind::nic));
    if (found == nullptr || !handle_table.remove(handle)) return refuse_handle("NicHandle", handle, HandleKind::nic);
    Nic& nic = *found;
    Library& library = *nic.library;
    library.remove_open(&nic);
    nic.handle.store(0);  // from here on no call finds the NIC
    nic.dispatcher->close();
    const Deadline until = now_ns() + limit_ns(TimeLimit::traffic);  // for all of them together
    for_each_vi(nic, [&](Vi& vi) { finish_sends(vi, until); });
    // Twice: a thread that was inside may have made another VI or CQ before leaving.
    for_each_vi(nic, [](Vi& vi) { kill_vi(vi); });
    for_each_cq(nic, [](Cq& cq) { kill_cq(cq); });
    const uint32_t own = interrupted_calls(nic);
    wait_until_unused(nic, own);
    if (own != 0) {
        // Called by a signal handler: the calls below it look at the NIC once more when it returns, also one that was
        // about to sleep. Its memory stays.
        nic.ops->wake(nic.context);
        kill_connections(nic);
        tell_agent_closed(nic);
        return VIP_SUCCESS;
    }
    for_each_vi(nic, [](Vi& vi) {
        kill_vi(vi);
        release_vi(vi);
    });
    for_each_cq(nic, [](Cq& cq) {
        kill_cq(cq);
        release_cq(cq);
    });
    kill_connections(nic);
    kill_ptags(nic);
    tell_agent_closed(nic);
    take_apart(nic);
    return VIP_SUCCESS;
}

void nic_failed(Nic& nic) {
    BreakReason why;
    why.code = VIP_ERROR_CATASTROPHIC;
    why.resource = VIP_RESOURCE_NIC;
    why.report = false;  // once for all of them, below
    why.cause.kind = CauseKind::device;
    for_each_vi(nic, [&](Vi& vi) {
        {
            const BothQueues both(vi.core);
            const bool ours = vi.nic == &nic && vi.handle.load() != 0;  // it may have been destroyed meanwhile
            if (ours && vi.state() == VIP_STATE_CONNECTED) vi.core.mark_broken(why);
        }
        settle_if_broken(vi);
    });
    AsyncError error;
    error.record.NicHandle = nic.public_handle();
    error.record.ResourceCode = VIP_RESOURCE_NIC;
    error.record.ErrorCode = VIP_ERROR_CATASTROPHIC;
    error.due = now_ns();
    nic.dispatcher->report(error);
}

}  // namespace viaduct::vipl
