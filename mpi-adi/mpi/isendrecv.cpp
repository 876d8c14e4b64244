// SPDX-License-Identifier: BSD-2-Clause
// MPI_Isendrecv and its form with one buffer: a send and a receive that go on together under one request, whose status
// is that of the receive. Two messages cannot be cancelled as one, so that request cannot (nor can MPICH's); where one
// side is MPI_PROC_NULL it is that of the other message alone, and can.
#include <memory>

#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/p2p_arguments.hpp"

namespace viaduct::mpi {
namespace {

class Exchange final : public Activity {
  public:
    // The request that completes with this, known only when it has been started.
    void belongs_to(Request* owner) { owner_ = owner; }
    void begin(Request* send, Request* receive) {
        send_ = send;
        receive_ = receive;
    }
    // What goes out of a buffer that what comes in replaces.
    char* copy(uint64_t bytes) {
        copy_ = std::make_unique_for_overwrite<char[]>(bytes);
        return copy_.get();
    }

    bool advance(int* error) override {
        if (!owner_ || !done(send_) || !done(receive_)) {
            return false;
        }
        MPI_Status status;
        *error = finish(receive_, &status);
        int sent = finish(send_, MPI_STATUS_IGNORE);
        *error = *error ? *error : sent;
        // From here on the owner tells what a receive would.
        owner_->kind = Request::Kind::receive;
        owner_->r_rank = status.MPI_SOURCE;
        owner_->r_tag = status.MPI_TAG;
        owner_->r_length = bytes_of(status);
        owner_->r_bytes = 0;  // the debugging mode looks for no buffer of it
        return true;
    }

  private:
    Request* owner_ = nullptr;
    Request* send_ = nullptr;
    Request* receive_ = nullptr;
    std::unique_ptr<char[]> copy_;
};

int go(Comm& comm, std::unique_ptr<Exchange> exchange, int to, int send_tag, const Payload& out, int from,
       int receive_tag, const Payload& in, MPI_Request* handle) {
    // The one with a handle first: the others need no name, and there may be just one left.
    Exchange* going = exchange.release();
    Request* request = start(going, &comm);
    const int answer = publish(request, handle);
    Request* receive = irecv(comm, Channel::p2p, from, receive_tag, in);
    going->begin(isend(comm, Channel::p2p, to, send_tag, out), receive);
    going->belongs_to(request);
    return answer;
}

// With MPI_PROC_NULL on at least one side.
int go_one_way(Comm& comm, int to, int send_tag, const Payload& out, int from, int receive_tag, const Payload& in,
               MPI_Request* handle) {
    if (to == MPI_PROC_NULL) return publish(irecv(comm, Channel::p2p, from, receive_tag, in), handle);
    Request* const request = isend(comm, Channel::p2p, to, send_tag, out);
    request->no_process = true;  // its status is that of the receive
    return publish(request, handle);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED_ON(comm, Isendrecv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                        void* recvbuf, Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                        MPI_Request* request),
                       {
                           Call call("MPI_Isendrecv", comm_of(comm));
                           VIADUCT_MPI_NEED(request)
                           const Arguments out = for_send(sendbuf, sendcount, sendtype, dest, sendtag, comm);
                           const Arguments in = for_receive(recvbuf, recvcount, recvtype, source, recvtag, comm);
                           if (int error = out.error ? out.error : in.error) {
                               return call.result(error);
                           }
                           if (!name_is_left()) {
                               return call.result(MPI_ERR_NO_MEM);
                           }
                           if (dest == MPI_PROC_NULL || source == MPI_PROC_NULL) {
                               return go_one_way(*out.comm, dest, sendtag, out.payload, source, recvtag, in.payload,
                                                 request);
                           }
                           return go(*out.comm, std::make_unique<Exchange>(), dest, sendtag, out.payload, source,
                                     recvtag, in.payload, request);
                       })

VIADUCT_MPI_COUNTED_ON(comm, Isendrecv_replace,
                       (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                        MPI_Comm comm, MPI_Request* request),
                       {
                           Call call("MPI_Isendrecv_replace", comm_of(comm));
                           VIADUCT_MPI_NEED(request)
                           const Arguments in = for_receive(buf, count, datatype, source, recvtag, comm);
                           const Arguments out = for_send(buf, count, datatype, dest, sendtag, comm);
                           if (int error = out.error ? out.error : in.error) {
                               return call.result(error);
                           }
                           if (!name_is_left()) {
                               return call.result(MPI_ERR_NO_MEM);
                           }
                           if (dest == MPI_PROC_NULL || source == MPI_PROC_NULL) {
                               return go_one_way(*in.comm, dest, sendtag, out.payload, source, recvtag, in.payload,
                                                 request);
                           }
                           const uint64_t bytes = out.payload.bytes;
                           auto exchange = std::make_unique<Exchange>();
                           char* copy = exchange->copy(bytes);
                           if (bytes > 0) {
                               type_of(datatype)->pack(buf, uint64_t(count), 0, bytes, copy);
                           }
                           return go(*in.comm, std::move(exchange), dest, sendtag, {copy, bytes, nullptr, 0}, source,
                                     recvtag, in.payload, request);
                       })
