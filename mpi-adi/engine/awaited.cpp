// SPDX-License-Identifier: BSD-2-Clause
// See awaited.hpp.
#include "mpi-adi/engine/awaited.hpp"

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {
namespace {

// Of this job; others are met later and numbered behind.
int rank_in_job(const process_t& process) {
    const int number = world_rank_of(process);
    return number < world().size ? number : -1;
}

void add_all_of(const mpip_comm& device_comm, const process_t* but, Awaited& what) {
    what.any = true;
    for (int rank = 0; rank < device_comm.c_size; rank++)
        if (device_comm.c_procs[rank] != but) what.add(rank_in_job(*device_comm.c_procs[rank]));
}

const process_t* own_process() { return world().processes[static_cast<size_t>(world().rank)]; }

WaitKind kind_of(const mpip_comm& device_comm, bool sends) {
    if (device_comm.c_rcvctxt == kJobContext) return WaitKind::finalize;
    const bool own_bits =
        (device_comm.c_rcvctxt >> 61 & 3) != 0;  // of the channels of kContextOf that have bits of their own
    if (!own_bits && (device_comm.c_rcvctxt & 1) != 0) return WaitKind::collective;
    return sends ? WaitKind::send : WaitKind::receive;
}

}  // namespace

void add_awaited(const Request& request, Awaited& what) {
    if (request.is_done()) return;
    if (request.kind == Request::Kind::activity) {
        what.kind = WaitKind::collective;
        if (request.r_engine != nullptr) static_cast<const Activity*>(request.r_engine)->add_awaited(what);
        return;
    }
    if ((request.kind != Request::Kind::send && request.kind != Request::Kind::receive) || request.r_comm == nullptr)
        return;
    const bool sends = request.kind == Request::Kind::send;
    what.kind = kind_of(*request.r_comm, sends);
    what.context = request.r_comm->c_rcvctxt;
    what.tag = what.kind == WaitKind::collective ? -2 : request.r_tag;
    what.bytes = static_cast<int64_t>(request.r_bytes);
    if (request.r_proc == nullptr) return add_all_of(*request.r_comm, own_process(), what);
    what.transport = request.r_proc->p_proto->pt_name;
    what.add(rank_in_job(*request.r_proc));
}

void add_awaited_source(const Comm& comm, int source, int tag, Awaited& what) {
    what.kind = WaitKind::probe;
    what.context = comm.recv_context;
    what.tag = tag;
    if (source < 0) return add_all_of(comm.channels[0], own_process(), what);
    what.transport = comm.peers[source]->p_proto->pt_name;
    what.add(rank_in_job(*comm.peers[source]));
}

void add_awaited_member(const Comm& comm, int rank, Awaited& what) {
    what.kind = WaitKind::window;
    what.context = comm.recv_context;
    what.transport = comm.peers[rank]->p_proto->pt_name;
    what.add(rank_in_job(*comm.peers[rank]));
}

void add_awaited_members(const Comm& comm, Awaited& what) {
    what.kind = WaitKind::window;
    what.context = comm.recv_context;
    add_all_of(comm.channels[0], own_process(), what);
}

}  // namespace viaduct::mpi
