// SPDX-License-Identifier: BSD-2-Clause
// One protocol for each pair of processes: of those that reach the peer the one of highest exclusivity. Both
// sides look at the same environments, so both choose alike.
#include <cstring>

#include "mpi-adi/transport/adi/error.hpp"

using viaduct::adi::fail;

namespace {

// By the name among equals: numbers may differ on the other side.
bool goes_before(const struct protocol& a, const struct protocol& b) {
    if (a.pt_prop.mp_exclusivity != b.pt_prop.mp_exclusivity)
        return a.pt_prop.mp_exclusivity > b.pt_prop.mp_exclusivity;
    return std::strcmp(a.pt_name, b.pt_name) < 0;
}

int choose(taskinfo_t* task, int rank, const char* forced) {
    int best = -1;
    for (int number = 0; number < NPROTO; ++number) {
        const struct protocol& protocol = mpip_protocols[number];
        if (protocol.pt_loaded == 0 || task->ti_renvsizes[number] == nullptr) continue;
        if (task->ti_renvsizes[number][rank] == 0 || task->ti_renvsizes[number][task->ti_index] == 0)
            continue;
        if (forced != nullptr && rank != task->ti_index && std::strcmp(forced, protocol.pt_name) != 0)
            continue;
        if (protocol.pt_reach(task, rank) == 0) continue;
        if (best < 0 || goes_before(protocol, mpip_protocols[best])) best = number;
    }
    return best;
}

// Of the processes whose protocol is known.
void make_chains(taskinfo_t* task) {
    procinfo* tail[NPROTO] = {};
    task->ti_nprotos = 0;
    for (int number = 0; number < NPROTO; ++number) {
        task->ti_proto[number] = nullptr;
        task->ti_nproto[number] = 0;
    }
    for (int i = 0; i < task->ti_nprocs; ++i) {
        procinfo& info = task->ti_procs[i];
        info.pi_next = nullptr;
        const int number = info.pi_proto;
        if (number < 0) continue;
        info.pi_ptrank = task->ti_nproto[number]++;
        (tail[number] == nullptr ? task->ti_proto[number] : tail[number]->pi_next) = &info;
        tail[number] = &info;
        if (info.pi_ptrank == 0) ++task->ti_nprotos;
    }
}

int unreachable(int rank, const char* forced, int* told) {
    if (told != nullptr) *told = rank;
    return fail(MPIP_ERR_UNREACHABLE, "no protocol reaches process %d%s%s", rank, forced != nullptr ? " by " : "",
                forced != nullptr ? forced : "");
}

}  // namespace

extern "C" {

int mpip_getconns(taskinfo_t* task, const char* forced, int* rank) {
    if (forced != nullptr && *forced == '\0') forced = nullptr;
    for (int i = 0; i < task->ti_nprocs; ++i) {
        procinfo& info = task->ti_procs[i];
        info.pi_proto = choose(task, i, forced);
        if (info.pi_proto < 0) return unreachable(i, forced, rank);
        info.pi_proc->p_proto = &mpip_protocols[info.pi_proto];
    }
    make_chains(task);
    return MPIP_SUCCESS;
}

int mpip_addconns(taskinfo_t* task, int* rank) {
    int answer = MPIP_SUCCESS;
    for (int i = 0; i < task->ti_nprocs; ++i) {
        procinfo& info = task->ti_procs[i];
        if (info.pi_proto >= 0) continue;
        info.pi_proto = choose(task, i, nullptr);
        if (info.pi_proto < 0)
            answer = unreachable(i, nullptr, rank);
        else
            info.pi_proc->p_proto = &mpip_protocols[info.pi_proto];
    }
    make_chains(task);
    return answer;
}
}
