// SPDX-License-Identifier: BSD-2-Clause
// See revoke.hpp. What sends by a communicator looks up a process and calls its module. So that sends need no check, a
// revoked communicator has in place of each member a process whose module refuses to send: pt_fsend and pt_queuedsend
// are all of it that is called.
#include "mpi-adi/engine/robust/revoke.hpp"

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/control.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::robust {
namespace {

int refuse_send(process_t*, const void*, size_t, const mpip_type_t*, int, mpip_comm_t*, int) {
    return MPIX_ERR_REVOKED;
}

void refuse_queued(process_t* process) {
    while (process->p_sendhead != nullptr) {
        mpip_req_t* const request = mpip_deqsend(process);
        request->r_error = MPIX_ERR_REVOKED;
        mpip_req_done(request);
    }
}

process_t& refusing_process() {
    static protocol module;
    static process_t process;
    if (process.p_proto == nullptr) {
        module.pt_name = "revoked";
        module.pt_fsend = refuse_send;
        module.pt_queuedsend = refuse_queued;
        process.p_proto = &module;
        process.p_gid.pg_wrank = world().rank;
    }
    return process;
}

// May be called again after it has failed: nothing is closed before there is memory for it.
void close_all_but_control(Comm& comm) {
    State& state = state_of(comm);
    state.refusing.assign(size_t(comm.remote_size), &refusing_process());
    for (unsigned i = 0; i < kChannels; i++)
        if (i != unsigned(Channel::control)) close_channel(comm, Channel(i), MPIX_ERR_REVOKED);
    comm.peers = state.refusing.data();
}

}  // namespace

bool is_revoked(const Communicator& comm) { return refusal(comm, Channel::p2p) == MPIX_ERR_REVOKED; }

void revoke(Communicator& comm) {
    State& state = state_of(comm);
    if (state.revocation_sent) return;
    close_all_but_control(comm);
    if (comm.within != nullptr) close_all_but_control(*comm.within);
    const Members members(comm);
    for (int i = 0; i < members.size(); i++)
        if (i != members.own() && !members.is_lost(i)) members.send(i, Control::revoke, {});
    state.revocation_sent = true;
}

}  // namespace viaduct::mpi::robust
