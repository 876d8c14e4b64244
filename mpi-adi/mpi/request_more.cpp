// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on requests besides waiting and testing: free, cancel, status of a request that stays.
// Each holds the engine's lock (Critical).
#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/request_ends.hpp"

namespace viaduct::mpi {
namespace {

// Takes a send that no module has begun out of its process' list of waiting sends.
void unlink_send(Request* request) {
    process_t* process = request->r_proc;
    mpip_req_t** at = &process->p_sendhead;
    mpip_req_t* before = nullptr;
    while (*at != request) {
        before = *at;
        at = &(*at)->r_next;
    }
    *at = request->r_next;
    if (process->p_sendtail == request) process->p_sendtail = before;
}

// A receive without a message, or a send that no module has begun, is cancelled at once. A send that a module has begun
// is cancelled only if the receiver answers that it has not been matched (spec/adi 6.5); MPI_Wait waits for the answer.
void cancel_request(Request* request) {
    if (request->kind == Request::Kind::pending) robust::wait_on(*request);
    if (request->is_done()) return;
    switch (request->kind) {
        case Request::Kind::receive:
            if (request->r_state != MPIP_REQ_RECVHEAD) return;
            matcher_of(request->r_ctxt).withdraw(request);
            break;
        case Request::Kind::send:
            if (request->r_state != MPIP_REQ_SENDREADY) {
                request->r_proc->p_proto->pt_cancelsend(request);
                return;
            }
            unlink_send(request);
            break;
        default:
            return;
    }
    request->r_state |= MPIP_REQ_CANCELLED;
    complete(request, MPI_SUCCESS);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_ENTRY(MPI_Request_free, (MPI_Request* handle)) try {
    Critical guard;
    if (handle == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Request_free");
    Request* request = request_of(*handle);
    if (request == nullptr) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Request_free");
    *handle = MPI_REQUEST_NULL;
    if (request->kind == Request::Kind::generalized) {
        const Generalized g = *request->generalized;
        if (request->is_done()) {
            free_request(request);
            return g.free();
        }
        request->detached = true;  // the handle stays valid for MPI_Grequest_complete
        return MPI_SUCCESS;
    }
    if (request->kind == Request::Kind::pending) robust::wait_on(*request);
    if (is_idle(request) || request->is_done())
        free_request(request);
    else
        detach_request(request);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Cancel, (MPI_Request* handle)) try {
    Critical guard;
    if (handle == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Cancel");
    Request* request = request_of(*handle);
    if (request == nullptr) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Cancel");
    if (request->not_cancellable) {
        note_detail("A collective, partitioned or one-sided operation, or MPI_Isendrecv, cannot be cancelled");
        return raise(request->comm, MPI_ERR_REQUEST, "MPI_Cancel");  // of the world where it belongs to none
    }
    if (is_idle(request)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Cancel");
    if (request->kind == Request::Kind::generalized) {
        const Generalized g = *request->generalized;
        return g.cancel(request->is_done() ? 1 : 0);
    }
    cancel_request(request);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Test_cancelled, (const MPI_Status* status, int* flag)) try {
    if (status == nullptr || flag == nullptr) return Call("MPI_Test_cancelled").result(MPI_ERR_ARG);
    *flag = status->count_hi_and_cancelled & 1;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Status_set_cancelled, (MPI_Status* status, int flag)) try {
    if (status == nullptr) return Call("MPI_Status_set_cancelled").result(MPI_ERR_ARG);
    status->count_hi_and_cancelled = (status->count_hi_and_cancelled & ~1) | (flag != 0 ? 1 : 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Request_get_status, (MPI_Request handle, int* flag, MPI_Status* status)) try {
    Critical guard;
    if (flag == nullptr || status == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Request_get_status");
    Request* request = handle == MPI_REQUEST_NULL ? nullptr : request_of(handle);
    if (request == nullptr && handle != MPI_REQUEST_NULL)
        return raise(nullptr, MPI_ERR_REQUEST, "MPI_Request_get_status");
    *flag = 1;
    if (is_idle(request)) {
        fill_empty_status(status);
        return MPI_SUCCESS;
    }
    static ProgressWait asked;
    if (!request->is_done()) (void)progress_once(asked, [&](Awaited& what) { add_awaited(*request, what); });
    *flag = request->is_done() ? 1 : 0;
    if (*flag == 0) return MPI_SUCCESS;
    if (request->kind == Request::Kind::generalized) {
        MPI_Status own;
        MPI_Status* told = status == MPI_STATUS_IGNORE ? &own : status;
        clear_status(told);
        return request->generalized->query(told);
    }
    fill_status(*request, status);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
