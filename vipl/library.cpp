// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/library.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/log/log.hpp"
#include "core/provider/loader.hpp"
#include "core/memory/region_table.hpp"
#include "core/stats/process_stats.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/cancellation.hpp"
#include "core/sync/fork_gate.hpp"
#include "core/trace/probe.hpp"
#include "core/wait/crowd_score.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/exiting.hpp"
#include "vipl/memory.hpp"
#include "vipl/nic.hpp"
#include "vipl/recorded.hpp"
#include "vipl/renewal.hpp"
#include "vipl/thread.hpp"
#include "vipl/user_agent.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {

HandleTable handle_table;

namespace {

// The process' library. Made behind the gate; both are made anew in a forked child.
std::atomic<Library*> instance{nullptr};
ForkGate start_gate;
bool watching = false;           // fork handlers are registered; behind the gate
std::atomic<pid_t> begun_by{0};  // the process that has begun to make a library

// What this thread holds while it forks.
thread_local EventThread* held = nullptr;

// A library that is being made, a provider that is being loaded, is waited for: what such code shares with its like
// in the child (locks, objects that are initialised once) would stay half done there for ever.
void before_fork() {
    start_gate.hold();
    hold_loader_for_fork();
    if (held != nullptr) return;
    Library* library = instance.load(std::memory_order_acquire);
    held = library == nullptr ? nullptr : library->events.get();
    if (held != nullptr) held->hold_for_fork();
}

void after_fork() {
    if (held != nullptr) std::exchange(held, nullptr)->let_go_after_fork();
    let_go_of_loader();
    start_gate.let_go();
}

// The child shares no NIC with its parent: handles are unknown there (their table is wiped by the kernel),
// the parent's objects stay where they are and are never touched, except that descriptors are closed so that
// the parent's end is seen. A later VipOpenNic makes a library of the child's own. This function allocates and frees
// nothing: at the fork another thread may have held a lock of the allocator.
void reset_after_fork() {
    const CancellationHeldOff held_off;
    start_gate.reset();
    reset_loader_in_child();
    begun_by.store(0);
    handle_table.reset_after_fork();
    stats::process_stats.reset_after_fork();
    clear_recording();
    clear_ending_threads();
    clear_threads();
    RegionTable::reset_after_fork();
    Library* parents = instance.exchange(nullptr);
    if (parents == nullptr) return;
    parents->link.reset_after_fork();
    if (held != nullptr) std::exchange(held, nullptr)->reset_after_fork();
}

// The agent keeps why calls of this process have failed, for a while after its end. It works without, too: there may be
// no segment, or the agent may be older. False: the connection is lost.
bool show_stats_to(AgentLink& fresh) {
    Mail mail(kagent::Type::kShowStats), answer;
    mail.descriptors.push_back(stats::process_stats.for_reading());
    return !mail.descriptors.front().valid() || fresh.exchange_now(std::move(mail), &answer) != Status::broken;
}

void order_recording(Library& library, const Mail& order, uint64_t epoch) {
    if (order.descriptors.size() != 1) return;
    const uint64_t number = number_recording();
    Fd copy(::fcntl(order.descriptors[0].get(), F_DUPFD_CLOEXEC, 3));
    if (!copy.valid()) return;
    const auto memory = std::make_shared<Fd>(std::move(copy));
    library.events->defer([&library, memory, epoch, number] {
        begin_recording(library, memory->get(), epoch, number);
        memory->reset();
    });
}

// A thread that has a NIC's mutex may be waiting for an agent, and with it for the list of open NICs: that list is left
// before the mutex is taken. A NIC that cannot be pinned is not open yet, or being closed: the program has no handle.
void fail_nic(Library& library, uint64_t context_id) {
    std::optional<NicPin> failed;
    library.for_each_open([&](Nic& nic) {
        if (nic.context_id == context_id) failed.emplace(nic);
    });
    if (failed && *failed) nic_failed(**failed);
}

// The NIC that a request to the agent is about.
Status make_nic_of_request_known(Library& library, uint64_t context_id, Deadline deadline) {
    if (const Status connected = library.link.connect(deadline); connected != Status::ok) return connected;
    std::optional<NicPin> asking;
    library.for_each_open([&](Nic& nic) {
        if (nic.context_id == context_id && nic.unknown_to_agent.load()) asking.emplace(nic);
    });
    return asking && *asking ? make_known(**asking, deadline) : Status::ok;
}

// Behind the gate.
bool watch_forks() {
    if (!watching) watching = ::pthread_atfork(before_fork, after_fork, reset_after_fork) == 0 && watch_exit();
    return watching;
}

}  // namespace

Library::Library()
    : config(Config::load()),
      policy(Policy::from(config)),
      spin_ns(config.get_int("vipl", "spin_us") * 1000),
      vis(vi_records) {}

bool Library::prepare() {
    switch_giving_way(config.get("vipl", "give_way") != "off");
    if (!handle_table.open()) return false;
    asymmetric_barrier_init();
    if (!stats::process_stats.open()) VIADUCT_LOG(info, "stats", "no memfd: vipstat will not see this process");
    trace::look_at_environment();
    trace::begin_as_told();
    events = std::make_unique<EventThread>(link);
    events->on_nic_failed([this](uint64_t id) { fail_nic(*this, id); });
    events->on_connect_request([this](uint64_t context_id, Deadline deadline) {
        return make_nic_of_request_known(*this, context_id, deadline);
    });
    events->on_question_for_calls([this] {
        bool expected = false;
        for_each_open([&](Nic& nic) { expected |= nic.dispatcher->has_armed(); });
        return expected;
    });
    events->on_turn([this] { look_at_recording(*this); });
    events->on_other_agent([this] { return renew_peer_requests(*this); });
    link.on_reattach([this](AgentLink& fresh) {
        if (!show_stats_to(fresh)) return Status::broken;
        Status worst = Status::ok;
        for_each_open([&](Nic& nic) {
            if (!nic.regions->can_be_shown()) {
                VIADUCT_LOG(error, "nic",
                            "the program has closed the descriptors of '%s': its connections go on, but it makes no "
                            "new ones (open the NIC again)",
                            nic.info.name);
                return;
            }
            const Status status = reattach_nic(nic, fresh);
            if (status == Status::unknown_name) {
                VIADUCT_LOG(error, "nic",
                            "the agent does not list '%s': its connections go on; calls that need the agent fail",
                            nic.info.name);
            } else if (status != Status::ok) {
                worst = status;
            }
        });
        return worst;
    });
    // Not before: the event thread would find the socket of the last agent, and look again a second later.
    link.on_connected([this](uint32_t agent_pid) {
        stats::process_stats.count(stats::ProcessCount::agent_attached);
        VIADUCT_PROBE1(agent_attached, agent_pid);
        events->wake();
    });
    // The thread that reads the event may hold locks of a NIC.
    link.on_event([this](const Mail& news, uint64_t epoch) {
        kagent::ContextRef which;
        switch (news.type()) {
            case kagent::Type::kNicDown:
                if (news.get(&which)) events->nic_failed(which.context_id);
                break;
            case kagent::Type::kTraceWanted:
                order_recording(*this, news, epoch);
                break;
            case kagent::Type::kTraceOver:
                note_recording_over();
                events->wake();
                break;
            default:
                break;
        }
    });
    return events->start() == Status::ok;  // last: no thread uses a library whose start has failed
}

Library* Library::start() {
    Library* ready = instance.load(std::memory_order_acquire);
    if (ready != nullptr && handle_table.was_wiped()) [[unlikely]] {  // a child of _Fork(), which runs no handlers
        reset_after_fork();
        ready = nullptr;
    }
    if (ready != nullptr) return ready;
    // A child of a process that was just making one, and of a _Fork() or before the handlers were registered.
    const pid_t own = ::getpid();
    if (const pid_t by = begun_by.exchange(own); by != 0 && by != own) {
        reset_after_fork();
        begun_by.store(own);
    }
    const std::lock_guard lock(start_gate);
    ready = instance.load(std::memory_order_acquire);
    if (ready != nullptr) return ready;
    if (!watch_forks()) return nullptr;
    log::check_environment();
    std::unique_ptr<Library> fresh(new Library);
    if (!fresh->prepare()) return nullptr;
    for (const ConfigProblem& problem : fresh->config.problems())
        if (problem.section != "mpi") VIADUCT_LOG(warn, "config", "%s", problem.text.c_str());
    instance.store(fresh.get(), std::memory_order_release);
    return fresh.release();
}

void Library::add_open(Nic* nic) {
    const std::lock_guard lock(open_mutex_);
    open_.push_back(nic);
}

void Library::poll_open() {
    const std::unique_lock lock(open_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (Nic* nic : open_) poll_everything(*nic);  // none is closed before it has left the list
}

void Library::remove_open(Nic* nic) {
    const std::lock_guard lock(open_mutex_);
    std::erase(open_, nic);
}

}  // namespace viaduct::vipl
