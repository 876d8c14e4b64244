// SPDX-License-Identifier: BSD-2-Clause
// MPI_Isend and its modes, MPI_Irecv, and the persistent requests made of the same arguments.
#include "mpi-adi/engine/bsend.hpp"
#include "mpi-adi/engine/progress_thread.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/export.hpp"
#include "mpi-adi/mpi/p2p_arguments.hpp"

namespace viaduct::mpi {
namespace {

int non_blocking_send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,
                      MPI_Comm handle, Mode mode, MPI_Request* request, const char* function) {
    Critical guard;
    const Arguments all = for_send(buffer, count, type, peer, tag, handle);
    if (all.error != MPI_SUCCESS) return raise(all.comm, all.error, function);
    if (request == nullptr) return raise(all.comm, MPI_ERR_ARG, function);
    if (!name_is_left()) return raise(all.comm, MPI_ERR_NO_MEM, function);
    return publish(isend(*all.comm, Channel::p2p, peer, tag, all.payload, mode), request);
}

Request* make_persistent(Request::Kind kind, const Arguments& all, int peer, int tag, Mode mode) {
    Request* request = new_request(kind);
    request->comm = all.comm;
    comm_retain(*all.comm);
    hold_type(*request, all.payload.type);
    request->persistent.reset(new Persistent{all.comm, peer, tag, all.payload, mode, false});
    return request;
}

int persistent_send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,
                    MPI_Comm handle, Mode mode, MPI_Request* request, const char* function) {
    Critical guard;
    const Arguments all = for_send(buffer, count, type, peer, tag, handle);
    if (all.error != MPI_SUCCESS) return raise(all.comm, all.error, function);
    if (request == nullptr) return raise(all.comm, MPI_ERR_ARG, function);
    if (!name_is_left()) return raise(all.comm, MPI_ERR_NO_MEM, function);
    return publish(make_persistent(Request::Kind::send, all, peer, tag, mode), request);
}

int start_again(MPI_Request handle) {
    Request* request = request_of(handle);
    if (request == nullptr || request->persistent == nullptr || request->persistent->active)
        return MPI_ERR_REQUEST;
    Persistent& with = *request->persistent;
    request->no_process = false;
    request->r_state = 0;
    request->r_flags = 0;
    if (request->kind == Request::Kind::activity) {
        request->r_error = MPI_SUCCESS;
        request->r_length = 0;
        begin_activity(*request, with.make());
    } else if (request->kind == Request::Kind::receive) {
        begin_receive(*request, *with.comm, Channel::p2p, with.peer, with.tag, with.payload);
    } else if (with.mode == Mode::buffered) {
        const int error = buffered_send(*with.comm, with.peer, with.tag, with.payload);
        if (error != MPI_SUCCESS) return error;
        complete_as_no_process(*request);
        request->no_process = with.peer == MPI_PROC_NULL;
    } else {
        start_send(*request, *with.comm, Channel::p2p, with.peer, with.tag, with.payload, with.mode);
    }
    with.active = true;
    leave_to_progress_thread(*request);
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED_ON(comm, Isend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        Critical guard;
                        if (request != nullptr && send_plain(buf, count, datatype, dest, tag, comm)) [[likely]] {
                            *request = kSentAtOnce;
                            return MPI_SUCCESS;
                        }
                        return non_blocking_send(buf, count, datatype, dest, tag, comm, Mode::standard,
                                                 request, "MPI_Isend");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Issend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return non_blocking_send(buf, count, datatype, dest, tag, comm, Mode::synchronous,
                                                 request, "MPI_Issend");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Irsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return non_blocking_send(buf, count, datatype, dest, tag, comm, Mode::ready, request,
                                                 "MPI_Irsend");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Ibsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        Critical guard;
                        const Arguments all = for_send(buf, count, datatype, dest, tag, comm);
                        if (request == nullptr) return raise(all.comm, MPI_ERR_ARG, "MPI_Ibsend");
                        if (!name_is_left()) return raise(all.comm, MPI_ERR_NO_MEM, "MPI_Ibsend");
                        const int error = all.error != MPI_SUCCESS
                                              ? all.error
                                              : buffered_send(*all.comm, dest, tag, all.payload);
                        if (error != MPI_SUCCESS) return raise(all.comm, error, "MPI_Ibsend");
                        Request* done = new_request(Request::Kind::send);
                        complete(done, MPI_SUCCESS);
                        return publish(done, request);
                    })

VIADUCT_MPI_COUNTED_ON(comm, Irecv,
                    (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        Critical guard;
                        if (!name_is_left()) [[unlikely]]
                            return raise(comm_of(comm), MPI_ERR_NO_MEM, "MPI_Irecv");
                        if (Comm* plain = comm_of(comm);
                            request != nullptr && is_plain(plain, source, tag, buf, count, datatype)) [[likely]] {
                            return publish(irecv_bytes(*plain, Channel::p2p, source, tag, buf,
                                                       bytes_of(count, datatype)), request);
                        }
                        const Arguments all = for_receive(buf, count, datatype, source, tag, comm);
                        if (all.error != MPI_SUCCESS) return raise(all.comm, all.error, "MPI_Irecv");
                        if (request == nullptr) return raise(all.comm, MPI_ERR_ARG, "MPI_Irecv");
                        return publish(irecv(*all.comm, Channel::p2p, source, tag, all.payload), request);
                    })

VIADUCT_MPI_COUNTED_ON(comm, Send_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return persistent_send(buf, count, datatype, dest, tag, comm, Mode::standard, request,
                                               "MPI_Send_init");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Ssend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return persistent_send(buf, count, datatype, dest, tag, comm, Mode::synchronous,
                                               request, "MPI_Ssend_init");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Rsend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return persistent_send(buf, count, datatype, dest, tag, comm, Mode::ready, request,
                                               "MPI_Rsend_init");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Bsend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        return persistent_send(buf, count, datatype, dest, tag, comm, Mode::buffered, request,
                                               "MPI_Bsend_init");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Recv_init,
                    (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                     MPI_Request* request),
                    {
                        Critical guard;
                        const Arguments all = for_receive(buf, count, datatype, source, tag, comm);
                        if (all.error != MPI_SUCCESS) return raise(all.comm, all.error, "MPI_Recv_init");
                        if (request == nullptr) return raise(all.comm, MPI_ERR_ARG, "MPI_Recv_init");
                        if (!name_is_left()) return raise(all.comm, MPI_ERR_NO_MEM, "MPI_Recv_init");
                        return publish(make_persistent(Request::Kind::receive, all, source, tag, Mode::standard),
                                       request);
                    })

VIADUCT_MPI_ENTRY(MPI_Start, (MPI_Request* request)) try {
    Critical guard;
    if (request == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Start");
    return answer(nullptr, start_again(*request), "MPI_Start");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Startall, (int count, MPI_Request* requests)) try {
    Critical guard;
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Startall");
    if (count > 0 && requests == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Startall");
    for (int i = 0; i < count; i++)
        if (const int error = start_again(requests[i]); error != MPI_SUCCESS)
            return raise(nullptr, error, "MPI_Startall");
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
