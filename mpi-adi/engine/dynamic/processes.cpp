// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/dynamic/processes.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <unordered_map>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/card.hpp"
#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/transport/adi/error.hpp"

namespace viaduct::mpi {
namespace {

// Numbers of nodes of other jobs; launchers count from zero, and below it.
constexpr int kOtherNodes = 1 << 30;

struct Introduction {
    uint32_t number;  // of the process, for all jobs
    uint32_t rank;    // in its job
    uint32_t node;    // own_node()
    std::string job;
    Card card;
};

struct OtherProcess {
    std::string job;
    JobSecret secret;
};

// By process number, from the size of this job on.
NeverDestroyed<std::deque<OtherProcess>> other_processes;
// Those that may be met again, by the number they have for all jobs.
NeverDestroyed<std::unordered_map<uint32_t, int>> known_processes;

bool is_of_other_job(int process) { return process >= world().size; }

std::optional<Introduction> read_introduction(std::string_view bytes) {
    Introduction one;
    std::string card;
    if (!take_number(&bytes, &one.number) || !take_number(&bytes, &one.rank) || !take_number(&bytes, &one.node) ||
        !take_part(&bytes, &one.job) || !take_part(&bytes, &card) || !bytes.empty())
        return std::nullopt;
    if (one.number >= kProcessNumbers || one.node >= kProcessNumbers || one.rank > INT32_MAX) return std::nullopt;
    const auto decoded = Card::decode(card);
    if (!decoded) return std::nullopt;
    one.card = *decoded;
    return one;
}

// Lost, or disconnected for good: when it connects again it is a new process.
bool is_over(const process_t& process) {
    return (process.p_flags & (MPIP_PROC_TRANSPORTERR | MPIP_PROC_LEFT)) != 0;
}

// -1: not known here. -2: its number is that of another process.
int find_process(const Introduction& one) {
    const uint32_t first = world().numbers[0];
    if (one.number - first < uint32_t(world().size)) {
        const bool same = one.job == engine.job->job() && one.rank == one.number - first;
        return same ? int(one.rank) : -2;
    }
    const auto found = known_processes->find(one.number);
    if (found == known_processes->end()) return -1;
    const int process = found->second;
    if ((*other_processes)[size_t(process - world().size)].job != one.job) return -2;
    return is_over(*world().processes[size_t(process)]) ? -1 : process;
}

int add_process(const Introduction& one, const JobSecret& secret) {
    const int number = int(engine.world.processes.size());
    OtherProcess& other = other_processes->emplace_back(OtherProcess{one.job, secret});
    process_t& process = engine.processes.emplace_back(process_t{});
    process.p_flags = MPIP_PROC_ROBUST;
    process.p_gid.pg_node = kOtherNodes | int(one.node);
    process.p_gid.pg_wrank = number;
    procinfo info{};
    info.pi_proc = &process;
    std::snprintf(info.pi_host, sizeof info.pi_host, "%s", one.card.host.c_str());
    info.pi_proto = -1;
    info.pi_nodeid = process.p_gid.pg_node;
    info.pi_secret = other.secret.data();
    info.pi_jobrank = int(one.rank);
    engine.infos.push_back(info);
    for (size_t p = 0; p < NPROTO; p++) {
        const std::string* found = one.card.environment_of(mpip_protocol_name(int(p)));
        engine.environment_sizes[p].push_back(found != nullptr ? int(found->size()) : 0);
        if (found != nullptr) engine.environments[p] += *found;
    }
    engine.world.processes.push_back(&process);
    engine.world.nodes.push_back(process.p_gid.pg_node);
    engine.world.numbers.push_back(one.number);
    (*known_processes)[one.number] = number;
    return number;
}

void use_module(protocol& module) {
    const auto end = engine.active + engine.active_count;
    if (std::find(engine.active, end, &module) != end) return;
    // The one for messages to oneself stays the last.
    const auto place = std::find_if(engine.active, end,
                                    [](const protocol* one) { return one->pt_number == MPIP_PROTO_SELF; });
    std::copy_backward(place, end, end + 1);
    *place = &module;
    engine.active_count++;
    engine.sleepers[engine.sleeper_count++] = &module;
}

int connect_added() {
    taskinfo_t& task = engine.task;
    int before[NPROTO];
    std::copy(std::begin(task.ti_nproto), std::end(task.ti_nproto), before);
    task.ti_procs = engine.infos.data();
    task.ti_nprocs = int(engine.infos.size());
    for (size_t p = 0; p < NPROTO; p++) {
        task.ti_renvsizes[p] = engine.environment_sizes[p].data();
        task.ti_renvs[p] = engine.environments[p].data();
    }
    int failed = mpip_addconns(&task, nullptr);
    for (int p = 0; p < NPROTO; p++) {
        protocol& module = mpip_protocols[p];
        if (task.ti_nproto[p] == before[p]) continue;
        if (const int answer = module.pt_addconns(&task, task.ti_renvs[p])) failed = answer;
        use_module(module);
    }
    return failed == MPIP_SUCCESS ? MPI_SUCCESS : MPI_ERR_OTHER;
}

}  // namespace

std::string own_introduction() {
    Card card;
    card.host = engine.infos[size_t(world().rank)].pi_host;
    for (int p = 0; p < NPROTO; p++) {
        if (engine.task.ti_outerenvsize[p] == 0 || mpip_protocols[p].pt_loaded == 0) continue;
        card.environments.emplace_back(mpip_protocol_name(p),
                                       std::string(static_cast<const char*>(engine.task.ti_outerenv[p]),
                                                   size_t(engine.task.ti_outerenvsize[p])));
    }
    std::string bytes;
    append_number(&bytes, world().numbers[size_t(world().rank)]);
    append_number(&bytes, uint32_t(world().rank));
    append_number(&bytes, own_node());
    append_part(&bytes, engine.job->job());
    append_part(&bytes, card.encode());
    return bytes;
}

int meet_processes(const std::vector<std::string>& introductions, const JobSecret& secret, std::vector<int>* numbers) {
    numbers->clear();
    std::vector<Introduction> all;
    for (const std::string& bytes : introductions) {
        auto one = read_introduction(bytes);
        if (!one || find_process(*one) == -2) return MPI_ERR_INTERN;
        all.push_back(std::move(*one));
    }
    bool added = false;
    for (const Introduction& one : all) {
        int number = find_process(one);
        if (number < 0) {
            number = add_process(one, secret);
            added = true;
        }
        numbers->push_back(number);
    }
    return added ? connect_added() : MPI_SUCCESS;
}

void hold_processes(const Group& group) {
    for (const int number : group.world) {
        if (!is_of_other_job(number)) continue;
        process_t& process = *world().processes[size_t(number)];
        process.p_flags &= ~MPIP_PROC_REMOVED;
        if (process.p_conns++ == 0) robust::connect_early(process);
    }
}

void let_processes_go(const Group& group) {
    for (const int number : group.world) {
        if (!is_of_other_job(number)) continue;
        process_t* process = world().processes[size_t(number)];
        process->p_proto->pt_remconns(&process, 1, nullptr);
    }
}

int part_from_processes(const Group& group) {
    std::vector<process_t*> of[NPROTO];
    for (const int number : group.world) {
        if (!is_of_other_job(number)) continue;
        process_t* process = world().processes[size_t(number)];
        const bool open = (process->p_flags & MPIP_PROC_REMOVED) != 0 && process->p_pm != nullptr;
        if (open) of[process->p_proto->pt_number].push_back(process);
    }
    int failed = MPI_SUCCESS;
    for (auto& processes : of) {
        if (processes.empty()) continue;
        const int answer = processes[0]->p_proto->pt_closeconns(processes.data(), int(processes.size()), nullptr);
        if (answer != MPIP_SUCCESS) failed = MPI_ERR_OTHER;
        for (process_t* process : processes) process->p_flags |= MPIP_PROC_LEFT;
    }
    return failed;
}

}  // namespace viaduct::mpi
