// SPDX-License-Identifier: BSD-2-Clause
// Looking at messages before receiving them: MPI_Probe, and the matched kind that takes a message out of the
// queue.
#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/export.hpp"
#include "mpi-adi/mpi/p2p_arguments.hpp"

namespace viaduct::mpi {
namespace {

void fill_status_of(const Unexpected& message, MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = message.um_env.ev_rank;
    status->MPI_TAG = message.um_env.ev_tag;
    status->count_hi_and_cancelled = 0;
    set_count(status, message.um_env.ev_len);
}

int check(Comm* comm, int source, int tag) {
    if (comm == nullptr) return MPI_ERR_COMM;
    if (!can_receive_from(*comm, source)) return MPI_ERR_RANK;
    return tag < 0 && tag != MPI_ANY_TAG ? MPI_ERR_TAG : MPI_SUCCESS;
}

// Null, with the error: nothing can come any more.
Unexpected* wait_for_message(Comm& comm, int source, int tag, int* error) {
    Unexpected* message = nullptr;
    progress_until_one(
        [&] {
            message = comm.matchers[0]->find(source, tag);
            return message != nullptr || (*error = robust::loss_for_receive(comm, Channel::p2p, source)) != MPI_SUCCESS;
        },
        [&](Awaited& what) { add_awaited_source(comm, source, tag, what); });
    return message;
}

Unexpected* look_for_message(Comm& comm, int source, int tag) {
    static ProgressWait asked;
    Unexpected* message = comm.matchers[0]->find(source, tag);
    if (message != nullptr) return message;
    (void)progress_once(asked, [&](Awaited& what) { add_awaited_source(comm, source, tag, what); });
    return comm.matchers[0]->find(source, tag);
}

int take(Comm& comm, Unexpected* message, MPI_Message* handle) {
    comm.matchers[0]->remove(message);
    Request* request = new_request(Request::Kind::message);
    request->message = message;
    request->comm = &comm;
    comm_retain(comm);
    return publish(request, handle);
}

// The receive of a message that a matched probe took; null when the handle names none. Nothing of a probe is
// left, and its place among the requests with handles is that of the receive.
Request* receive_message(MPI_Message* handle, const Payload& payload) {
    Request* probed = request_of(*handle);
    if (probed == nullptr || probed->kind != Request::Kind::message) return nullptr;
    Unexpected* message = probed->message;
    Comm& comm = *probed->comm;
    comm_retain(comm);
    free_request(probed);
    *handle = MPI_MESSAGE_NULL;
    Request* request = new_request(Request::Kind::receive);
    request->comm = &comm;
    hold_type(*request, payload.type);
    set_up_receive(*request, comm, Channel::p2p, message->um_env.ev_rank, message->um_env.ev_tag, payload);
    take_unexpected(message, request);
    return request;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_ENTRY(MPI_Probe, (int source, int tag, MPI_Comm handle, MPI_Status* status)) try {
    Critical guard;
    Comm* comm = comm_of(handle);
    if (const int bad = check(comm, source, tag); bad != MPI_SUCCESS) return raise(comm, bad, "MPI_Probe");
    if (status == nullptr) return raise(comm, MPI_ERR_ARG, "MPI_Probe");
    if (source == MPI_PROC_NULL) {
        fill_no_process_status(status);
        return MPI_SUCCESS;
    }
    int error = MPI_SUCCESS;
    const Unexpected* message = wait_for_message(*comm, source, tag, &error);
    if (message == nullptr) return raise(comm, error, "MPI_Probe");
    fill_status_of(*message, status);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(handle)

VIADUCT_MPI_ENTRY(MPI_Iprobe, (int source, int tag, MPI_Comm handle, int* flag, MPI_Status* status)) try {
    Critical guard;
    Comm* comm = comm_of(handle);
    if (const int bad = check(comm, source, tag); bad != MPI_SUCCESS) return raise(comm, bad, "MPI_Iprobe");
    if (flag == nullptr || status == nullptr) return raise(comm, MPI_ERR_ARG, "MPI_Iprobe");
    *flag = 1;
    if (source == MPI_PROC_NULL) {
        fill_no_process_status(status);
    } else if (const Unexpected* message = look_for_message(*comm, source, tag)) {
        fill_status_of(*message, status);
    } else {
        *flag = 0;
        return answer(comm, robust::loss_for_receive(*comm, Channel::p2p, source), "MPI_Iprobe");
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(handle)

VIADUCT_MPI_ENTRY(MPI_Mprobe, (int source, int tag, MPI_Comm handle, MPI_Message* message, MPI_Status* status)) try {
    Critical guard;
    Comm* comm = comm_of(handle);
    if (const int bad = check(comm, source, tag); bad != MPI_SUCCESS) return raise(comm, bad, "MPI_Mprobe");
    if (message == nullptr || status == nullptr) return raise(comm, MPI_ERR_ARG, "MPI_Mprobe");
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        fill_no_process_status(status);
        return MPI_SUCCESS;
    }
    int error = MPI_SUCCESS;
    Unexpected* found = wait_for_message(*comm, source, tag, &error);
    if (found == nullptr) return raise(comm, error, "MPI_Mprobe");
    if (!name_is_left()) return raise(comm, MPI_ERR_NO_MEM, "MPI_Mprobe");
    fill_status_of(*found, status);
    return take(*comm, found, message);
} VIADUCT_MPI_CATCH(handle)

VIADUCT_MPI_ENTRY(MPI_Improbe, (int source, int tag, MPI_Comm handle, int* flag, MPI_Message* message,
                                MPI_Status* status)) try {
    Critical guard;
    Comm* comm = comm_of(handle);
    if (const int bad = check(comm, source, tag); bad != MPI_SUCCESS) return raise(comm, bad, "MPI_Improbe");
    if (flag == nullptr || message == nullptr || status == nullptr) return raise(comm, MPI_ERR_ARG, "MPI_Improbe");
    *flag = 1;
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        fill_no_process_status(status);
    } else if (Unexpected* found = look_for_message(*comm, source, tag)) {
        if (!name_is_left()) return raise(comm, MPI_ERR_NO_MEM, "MPI_Improbe");
        fill_status_of(*found, status);
        return take(*comm, found, message);
    } else {
        *flag = 0;
        return answer(comm, robust::loss_for_receive(*comm, Channel::p2p, source), "MPI_Improbe");
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(handle)

VIADUCT_MPI_COUNTED(Mrecv, (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status), {
    Critical guard;
    Payload payload;
    if (const int bad = set_payload(&payload, buf, count, datatype); bad != MPI_SUCCESS)
        return raise(nullptr, bad, "MPI_Mrecv");
    if (message == nullptr || status == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Mrecv");
    if (*message == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        fill_no_process_status(status);
        return MPI_SUCCESS;
    }
    Request* request = receive_message(message, payload);
    if (request == nullptr) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Mrecv");
    Comm& comm = *request->comm;
    comm_retain(comm);
    const int error = answer(&comm, wait(request, status), "MPI_Mrecv");
    comm_release(comm);
    return error;
})

VIADUCT_MPI_COUNTED(Imrecv, (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* handle),
                    {
                        Critical guard;
                        Payload payload;
                        if (const int bad = set_payload(&payload, buf, count, datatype); bad != MPI_SUCCESS)
                            return raise(nullptr, bad, "MPI_Imrecv");
                        if (message == nullptr || handle == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Imrecv");
                        Request* request = nullptr;
                        if (*message == MPI_MESSAGE_NO_PROC) {
                            if (!name_is_left()) return raise(nullptr, MPI_ERR_NO_MEM, "MPI_Imrecv");
                            *message = MPI_MESSAGE_NULL;
                            request = new_request(Request::Kind::receive);
                            complete_as_no_process(*request);
                        } else {
                            request = receive_message(message, payload);
                            if (request == nullptr) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Imrecv");
                        }
                        return publish(request, handle);
                    })
