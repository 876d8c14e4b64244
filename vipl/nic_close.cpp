// SPDX-License-Identifier: BSD-2-Clause
// The ends of a NIC: closed by the program, or failed. Part of nic.hpp.
#include <algorithm>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/sync/futex.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/library.hpp"
#include "vipl/memory.hpp"
#include "vipl/nic.hpp"
#include "vipl/policy.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// A thread may be about to sleep: waiters are woken until no call is inside.
void wait_until_unused(Nic& nic) {
    for (uint32_t users = nic.users.load(); users != 0; users = nic.users.load()) {
        nic.ops->wake(nic.context);
        futex_wait(nic.users, users, 2'000'000, false);
    }
}

std::vector<Vi*> vis_of(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    std::vector<Vi*> vis = nic.vis;
    std::erase(vis, nullptr);
    return vis;
}

std::vector<Cq*> cqs_of(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    return nic.cqs;
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
    nic.library->nics.give_back(&nic);
}

// No thread waits for the answer: the next request to the agent comes behind it on the same socket, an agent
// that stands still must not hold up the end of a program, and this NIC is not reported to a new agent.
void tell_agent_closed(Nic& nic) {
    AgentLink& link = nic.library->link;
    kagent::ContextRef which;
    which.context_id = nic.context_id;
    uint32_t ticket = 0;
    if (link.start(Mail::of(kagent::Type::kCloseNic, which), &ticket, kOnlyConnected) == Status::ok)
        link.abandon(ticket);
}

VIP_RETURN close_nic(VIP_NIC_HANDLE handle) {
    auto* found = static_cast<Nic*>(handle_table.find(handle, HandleKind::nic));
    if (found == nullptr || !handle_table.remove(handle)) return refuse_handle("NicHandle", handle, HandleKind::nic);
    Nic& nic = *found;
    Library& library = *nic.library;
    library.remove_open(&nic);
    nic.handle.store(0);  // from here on no call finds the NIC
    nic.dispatcher->close();
    const Deadline until = now_ns() + kTrafficTimeout;  // for all of them together
    for (Vi* vi : vis_of(nic)) finish_sends(*vi, until);
    // Twice: a thread that was inside may have made another VI or CQ before leaving.
    for (Vi* vi : vis_of(nic)) kill_vi(*vi);
    for (Cq* cq : cqs_of(nic)) kill_cq(*cq);
    wait_until_unused(nic);
    for (Vi* vi : vis_of(nic)) {
        kill_vi(*vi);
        release_vi(*vi);
    }
    for (Cq* cq : cqs_of(nic)) {
        kill_cq(*cq);
        release_cq(*cq);
    }
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
    for (Vi* vi : vis_of(nic)) {
        {
            const BothQueues both(vi->core);
            const bool ours =
                vi->nic == &nic && vi->handle.load() != 0;  // it may have been destroyed meanwhile
            if (ours && vi->state() == VIP_STATE_CONNECTED) vi->core.mark_broken(why);
        }
        settle_if_broken(*vi);
    }
    AsyncError error;
    error.record.NicHandle = nic.public_handle();
    error.record.ResourceCode = VIP_RESOURCE_NIC;
    error.record.ErrorCode = VIP_ERROR_CATASTROPHIC;
    error.due = now_ns();
    nic.dispatcher->report(error);
}

}  // namespace viaduct::vipl
