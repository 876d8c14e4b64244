// SPDX-License-Identifier: BSD-2-Clause
// See state.hpp.
#include "mpi-adi/engine/robust/state.hpp"

#include <algorithm>
#include <csignal>

#include "core/process/never_destroyed.hpp"
#include "core/shm/fd.hpp"
#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/agreement.hpp"
#include "mpi-adi/engine/robust/ended.hpp"

namespace viaduct::mpi::robust {
namespace {

constexpr long kNoJobIsLarger = 1 << 20;
constexpr int kSpareDescriptors = 16;

// Process numbers, in the order in which this process has heard of their loss.
NeverDestroyed<std::vector<int>> lost_processes;
NeverDestroyed<std::vector<State*>> watched;
bool forgiving = false;

// A request of the program that it can wait for again.
bool can_stay(const Request& receive) {
    return receive.kind == Request::Kind::receive && receive.handle != MPI_REQUEST_NULL && !receive.detached;
}

bool has_unacknowledged(const State& state) {
    return std::any_of(state.lost.begin() + std::ptrdiff_t(state.acknowledged), state.lost.end(),
                       [](const LostMember& one) { return one.rank >= 0; });
}

bool all_are_lost(const State& state) {
    const auto there = [](const LostMember& one) { return one.rank >= 0; };
    return std::count_if(state.lost.begin(), state.lost.end(), there) == state.comm.remote_size;
}

bool end_all(Matcher& matcher, int error) {
    bool moved = false;
    while (Request* const receive = matcher.take_any_receive()) {
        complete(receive, error);
        moved = true;
    }
    while (Unexpected* const message = matcher.first_message()) {
        matcher.remove(message);
        dismiss(message);
        moved = true;
    }
    return moved;
}

bool fail_receives_from_lost(State& state, Matcher& matcher) {
    bool moved = false;
    for (const LostMember& one : state.lost) {
        if (one.rank < 0) continue;
        while (Request* const receive = matcher.first_receive_of(one.rank)) {
            matcher.withdraw(receive);
            complete(receive, MPIX_ERR_PROC_FAILED);
            moved = true;
        }
    }
    const bool never = all_are_lost(state);
    if (!never && !has_unacknowledged(state)) return moved;
    while (Request* const receive = matcher.take_receive_from_anywhere()) {
        const bool stays = !never && can_stay(*receive);
        if (stays) {
            receive->kind = Request::Kind::pending;
            state.ended.push_back(receive);
        }
        complete(receive, stays ? MPIX_ERR_PROC_FAILED_PENDING : MPIX_ERR_PROC_FAILED);
        moved = true;
    }
    return moved;
}

bool look_after(State& state) {
    bool moved = false;
    for (unsigned i = 0; i < kChannels; i++) {
        Matcher* const matcher = state.comm.matchers[i];
        if (matcher == nullptr || i == static_cast<unsigned>(Channel::control)) continue;
        if (state.comm.fails_as_one)
            moved |= end_all(*matcher, MPIX_ERR_PROC_FAILED);
        else if (state.closed[i] != MPI_SUCCESS)
            moved |= end_all(*matcher, state.closed[i]);
        else if (!state.lost.empty())
            moved |= fail_receives_from_lost(state, *matcher);
    }
    return moved;
}

bool watch() {
    bool moved = see_to_held();
    for (size_t i = 0; i < watched->size();) {
        State* const state = (*watched)[i];
        Comm& comm = state->comm;
        comm_retain(comm);
        moved |= look_after(*state);
        comm_release(comm);  // it may have been the last one
        if (i < watched->size() && (*watched)[i] == state) i++;
    }
    if (watched->empty() && !has_held()) engine.watch = nullptr;
    return moved;
}

void begin_watching(State& state) {
    start_watch();
    if (state.watched) return;
    watched->push_back(&state);
    state.watched = true;
}

int rank_among(process_t* const* members, int size, const process_t& process) {
    const auto end = members + size;
    const auto found = std::find(members, end, &process);
    return found == end ? -1 : int(found - members);
}

bool knows(const State& state, int process) {
    return std::any_of(state.lost.begin(), state.lost.end(),
                       [=](const LostMember& one) { return one.process == process; });
}

process_t* const* members_of(const Comm& comm) { return comm.robust != nullptr ? comm.robust->members : comm.peers; }

// What is told of one communicator when it has lost a member.
void note(Comm& comm, int number) {
    const process_t& process = *world().processes[size_t(number)];
    const int rank = rank_among(members_of(comm), comm.remote_size, process);
    Communicator* const within = comm.inter ? static_cast<Communicator&>(comm).within : nullptr;
    const bool here = within != nullptr && rank_among(members_of(*within), within->remote_size, process) >= 0;
    if (rank < 0 && !here) return;
    State& state = state_of(comm);
    if (knows(state, number)) return;
    // It counts as known last: what fails before is done again.
    close_channel(comm, Channel::collective, MPIX_ERR_PROC_FAILED);
    if (within != nullptr) close_channel(*within, Channel::collective, MPIX_ERR_PROC_FAILED);
    for (mpip_comm& way : comm.channels) way.c_flags |= MPIP_COMM_TRANSPORTERR;
    state.lost.push_back({number, rank});
}

}  // namespace

State::State(Comm& of) : comm(of), members(of.peers) {}
State::~State() = default;

State& state_of(Comm& comm) {
    if (comm.robust == nullptr) comm.robust = new State(comm);
    comm.direct = false;
    return *comm.robust;
}

void start_watch() { engine.watch = watch; }

bool is_lost(const process_t& process) { return (process.p_flags & MPIP_PROC_TRANSPORTERR) != 0; }

void lost(process_t& process) {
    const int number = world_rank_of(process);
    process.p_flags |= MPIP_PROC_TRANSPORTERR;
    if (std::find(lost_processes->begin(), lost_processes->end(), number) != lost_processes->end()) return;
    lost_processes->push_back(number);
    for (const auto& [context, matcher] : engine.matchers) {
        Comm* const owner = matcher->owner();
        if (owner != nullptr && owner->recv_context == context) note(*owner, number);
    }
}

int loss_for_receive(const Comm& comm, Channel channel, int peer) {
    const State* const state = comm.robust;
    if (state == nullptr) return MPI_SUCCESS;
    if (const int error = refusal(comm, channel)) return error;
    if (peer >= 0) return is_lost(*state->members[peer]) ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS;
    return has_unacknowledged(*state) || all_are_lost(*state) ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS;
}

void close_channel(Comm& comm, Channel channel, int error) {
    State& state = state_of(comm);
    begin_watching(state);
    int& closed = state.closed[static_cast<unsigned>(channel)];
    if (closed != MPIX_ERR_REVOKED) closed = error;
}

// Received into nothing, in a request of its own that frees itself.
void dismiss(Unexpected* message) {
    if (message->um_buf != nullptr) return discard(message);
    Request* const nowhere = new_request(Request::Kind::receive);
    nowhere->r_buf = nullptr;
    nowhere->r_bytes = 0;
    nowhere->r_type = nullptr;
    nowhere->r_count = 0;
    nowhere->r_mode = 0;
    nowhere->r_ctxt = message->um_env.ev_ctxt;
    nowhere->r_id = nowhere->r_peereq = 0;
    nowhere->r_data = nullptr;
    nowhere->r_comm = nullptr;
    detach_request(nowhere);
    take_unexpected(message, nowhere);
}

void wait_on(Request& request) {
    Comm& comm = *request.comm;
    std::erase(comm.robust->ended, &request);
    const Persistent* const kept = request.persistent.get();
    const int tag = kept != nullptr ? kept->tag : request.r_tag;
    request.kind = Request::Kind::receive;
    request.r_state = MPIP_REQ_RECVHEAD;
    request.r_error = MPI_SUCCESS;
    request.r_tag = tag;
    request.r_rank = MPI_ANY_SOURCE;
    request.r_proc = nullptr;
    Matcher& matcher = *comm.matchers[static_cast<unsigned>(Channel::p2p)];
    if (Unexpected* const message = matcher.find(MPI_ANY_SOURCE, tag)) {
        matcher.remove(message);
        take_unexpected(message, &request);
    } else {
        matcher.post_again(&request);
    }
}

void acknowledge(Comm& comm, size_t losses) {
    State& state = *comm.robust;
    state.acknowledged = losses;
    if (has_unacknowledged(state) || all_are_lost(state)) return;
    std::vector<Request*> again = std::exchange(state.ended, {});
    std::sort(again.begin(), again.end(), [](const Request* a, const Request* b) { return a->order < b->order; });
    for (Request* const request : again) wait_on(*request);
}

bool goes_on() { return forgiving; }

void attached(Comm& comm) {
    for (const int number : *lost_processes) note(comm, number);
}

void detached(Comm& comm) {
    if (comm.robust != nullptr || !lost_processes->empty()) remember_ended(comm);
    if (comm.robust == nullptr) return;
    std::erase(*watched, comm.robust);
    if (comm.peers == comm.robust->refusing.data()) comm.peers = comm.robust->members;
    delete comm.robust;
    comm.robust = nullptr;
}

namespace {

void forgive(process_t& process) {
    forgiving = true;
    if (world_rank_of(process) != world().rank) process.p_flags |= MPIP_PROC_ROBUST;
}

// Hydra tells the processes that are left of each death by SIGUSR1, which would end them.
void take_launchers_signal() {
    struct sigaction now = {};
    if (::sigaction(SIGUSR1, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
    now.sa_handler = [](int) {};
    now.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR1, &now, nullptr);
}

}  // namespace

void connect_early(process_t& process) {
    if (descriptors_left(kSpareDescriptors)) process.p_proto->pt_queuedsend(&process);
}

void use_hint(const Info& given, Comm& comm) {
    const std::string* const value = given.find("cmpi_robust");
    if (value == nullptr || *value != "true") return;
    for (int rank = 0; rank < comm.remote_size; rank++) {
        process_t& member = *members_of(comm)[rank];
        forgive(member);
        connect_early(member);
    }
    for (mpip_comm& way : comm.channels) way.c_flags |= MPIP_COMM_ROBUST;
    take_launchers_signal();
}

void forgive_all() {
    for (process_t& process : engine.processes) forgive(process);
    engine.task.ti_flags |= TASK_ROBUST;
    (void)mpip_set_param("CMPI_ON_DEMAND", kNoJobIsLarger);
    take_launchers_signal();
}

}  // namespace viaduct::mpi::robust
