// SPDX-License-Identifier: BSD-2-Clause
// MPI_Send and its modes, MPI_Recv, MPI_Sendrecv.
#include <cstring>

#include "mpi-adi/engine/bsend.hpp"
#include "mpi-adi/mpi/export.hpp"
#include "mpi-adi/mpi/p2p_arguments.hpp"

namespace viaduct::mpi {
namespace {

int blocking_send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm handle,
                  Mode mode, const char* function) {
    Critical guard;
    const Arguments all = for_send(buffer, count, type, peer, tag, handle);
    if (all.error != MPI_SUCCESS) [[unlikely]]
        return raise(all.comm, all.error, function);
    return answer(all.comm, send(*all.comm, Channel::p2p, peer, tag, all.payload, mode), function);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED_ON(comm, Send,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), {
                        Critical guard;
                        if (send_plain(buf, count, datatype, dest, tag, comm)) [[likely]]
                            return MPI_SUCCESS;
                        return blocking_send(buf, count, datatype, dest, tag, comm, Mode::standard,
                                             "MPI_Send");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Ssend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), {
                        return blocking_send(buf, count, datatype, dest, tag, comm, Mode::synchronous,
                                             "MPI_Ssend");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Rsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), {
                        return blocking_send(buf, count, datatype, dest, tag, comm, Mode::ready, "MPI_Rsend");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Bsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), {
                        Critical guard;
                        const Arguments all = for_send(buf, count, datatype, dest, tag, comm);
                        const int error = all.error != MPI_SUCCESS
                                              ? all.error
                                              : buffered_send(*all.comm, dest, tag, all.payload);
                        return answer(all.comm, error, "MPI_Bsend");
                    })

VIADUCT_MPI_COUNTED_ON(comm,
    Recv,
    (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status), {
        Critical guard;
        if (Comm* plain = comm_of(comm); status != nullptr && is_plain(plain, source, tag, buf, count, datatype))
            [[likely]] {
            const int error =
                recv_bytes(*plain, Channel::p2p, source, tag, buf, bytes_of(count, datatype), status);
            return answer(plain, error, "MPI_Recv");
        }
        Arguments all = for_receive(buf, count, datatype, source, tag, comm);
        if (all.error == MPI_SUCCESS && status == nullptr) all.error = MPI_ERR_ARG;
        if (all.error != MPI_SUCCESS) return raise(all.comm, all.error, "MPI_Recv");
        return answer(all.comm, recv(*all.comm, Channel::p2p, source, tag, all.payload, status), "MPI_Recv");
    })

VIADUCT_MPI_COUNTED_ON(comm, Sendrecv,
                    (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                     void* recvbuf, Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
                     MPI_Comm comm, MPI_Status* status),
                    {
                        Critical guard;
                        const Arguments out = for_send(sendbuf, sendcount, sendtype, dest, sendtag, comm);
                        const Arguments in = for_receive(recvbuf, recvcount, recvtype, source, recvtag, comm);
                        int error = out.error != MPI_SUCCESS ? out.error : in.error;
                        if (error == MPI_SUCCESS && status == nullptr) error = MPI_ERR_ARG;
                        if (error == MPI_SUCCESS)
                            error = sendrecv(*out.comm, Channel::p2p, dest, sendtag, out.payload, source,
                                             recvtag, in.payload, status);
                        return answer(out.comm, error, "MPI_Sendrecv");
                    })

VIADUCT_MPI_COUNTED_ON(comm, Sendrecv_replace,
                    (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status),
                    {
                        Critical guard;
                        const Arguments out = for_send(buf, count, datatype, dest, sendtag, comm);
                        const Arguments in = for_receive(buf, count, datatype, source, recvtag, comm);
                        int error = out.error != MPI_SUCCESS ? out.error : in.error;
                        if (error == MPI_SUCCESS && status == nullptr) error = MPI_ERR_ARG;
                        if (error == MPI_SUCCESS) {
                            const auto copy = std::make_unique<char[]>(out.payload.bytes + 1);
                            if (out.payload.type != nullptr)
                                out.payload.type->pack(out.payload.base, out.payload.count, 0,
                                                       out.payload.bytes, copy.get());
                            else if (out.payload.bytes != 0)
                                std::memcpy(copy.get(), out.payload.base, out.payload.bytes);
                            const Payload packed{copy.get(), out.payload.bytes, nullptr, 0};
                            error = sendrecv(*out.comm, Channel::p2p, dest, sendtag, packed, source, recvtag,
                                             in.payload, status);
                        }
                        return answer(out.comm, error, "MPI_Sendrecv_replace");
                    })

VIADUCT_MPI_COUNTED(Buffer_attach, (void* buffer, Count size), {
    Critical guard;
    const int error = size < 0 ? MPI_ERR_ARG : attach_buffer(buffer, static_cast<size_t>(size));
    return answer(nullptr, error, "MPI_Buffer_attach");
})

VIADUCT_MPI_COUNTED(Buffer_detach, (void* buffer_addr, Count* size), {
    Critical guard;
    if (buffer_addr == nullptr || size == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Buffer_detach");
    void* address = nullptr;
    size_t bytes = 0;
    const int error = detach_buffer(&address, &bytes);
    if (error == MPI_SUCCESS) {
        *static_cast<void**>(buffer_addr) = address;
        *size = static_cast<Count>(bytes);
    }
    return answer(nullptr, error, "MPI_Buffer_detach");
})
