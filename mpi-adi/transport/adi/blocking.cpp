// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/blocking.hpp"

namespace viaduct::adi {

int wait_for(const mpip_req_t* req) {
    while ((*const_cast<const volatile int*>(&req->r_state) & MPIP_REQ_DONE) == 0) {
        const int rc = mpip_up.progress();
        if (rc < 0) return -rc;
    }
    return req->r_error;
}

namespace {

void fill(mpip_req_t& req, process_t* proc, void* buf, size_t count, const mpip_type_t* type, int tag,
          mpip_comm_t* comm) {
    req.r_proc = proc;
    req.r_buf = buf;
    req.r_bytes = bytes_of(count, type);
    req.r_type = type;
    req.r_count = count;
    req.r_tag = tag;
    req.r_comm = comm;
}

}  // namespace

int blocking_send(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                  mpip_comm_t* comm, int mode) {
    mpip_req_t req = {};
    fill(req, proc, const_cast<void*>(buf), count, type, tag, comm);
    req.r_flags = MPIP_REQ_SEND;
    req.r_mode = mode & ~MPIP_MODE_TRY;
    req.r_ctxt = comm->c_sndctxt;
    req.r_rank = comm->c_rank;
    mpip_enqsend(proc, &req);
    proc->p_proto->pt_queuedsend(proc);
    return wait_for(&req);
}

int blocking_receive(process_t* proc, void* buf, size_t count, const mpip_type_t* type, int tag,
                     mpip_comm_t* comm, mpip_req_t* status) {
    mpip_req_t own = {};
    mpip_req_t& req = status != nullptr ? *status : own;
    req = {};
    fill(req, proc, buf, count, type, tag, comm);
    req.r_state = MPIP_REQ_RECVHEAD;
    req.r_ctxt = comm->c_rcvctxt;
    req.r_rank = proc->p_gid.pg_wrank;
    for (int rank = 0; comm->c_procs != nullptr && rank < comm->c_size; ++rank) {
        if (comm->c_procs[rank] == proc) req.r_rank = rank;
    }
    const int rc = mpip_up.post(&req);
    return rc != MPIP_SUCCESS ? rc : wait_for(&req);
}

int blocking_unexpected(process_t* proc, unexmsg_t* message, void* buf, size_t count, const mpip_type_t* type,
                        mpip_comm_t* comm, mpip_req_t* status) {
    mpip_req_t own = {};
    mpip_req_t& req = status != nullptr ? *status : own;
    req = {};
    fill(req, proc, buf, count, type, message->um_env.ev_tag, comm);
    req.r_ctxt = message->um_env.ev_ctxt;
    req.r_rank = message->um_env.ev_rank;
    const int rc = proc->p_proto->pt_uirecv(proc, message, &req);
    return rc != MPIP_SUCCESS ? rc : wait_for(&req);
}

void end_request(mpip_req_t* req, int error) {
    req->r_error = error;
    mpip_req_done(req);
}

int remove_logically(process_t** procs, int count, void** info) {
    for (int i = 0; i < count; ++i) {
        if (procs[i]->p_conns > 0 && --procs[i]->p_conns == 0) procs[i]->p_flags |= MPIP_PROC_REMOVED;
    }
    if (info != nullptr) *info = nullptr;
    return MPIP_SUCCESS;
}

void detach(process_t* proc) {
    if ((proc->p_flags & MPIP_PROC_ATTACHED) == 0) return;
    proc->p_flags &= ~MPIP_PROC_ATTACHED;
    --proc->p_proto->pt_nprocs;
}

}  // namespace viaduct::adi
