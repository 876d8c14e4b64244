// SPDX-License-Identifier: BSD-2-Clause
// Buffered sends: an internal request, with a copy of the data, under the account of the attached buffer.
#include "mpi-adi/engine/bsend.hpp"

#include <cstring>
#include <string>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/failure.hpp"

namespace viaduct::mpi {
namespace {

struct {
    bool attached = false;
    void* address = nullptr;
    size_t bytes = 0;
    size_t used = 0;
} buffer;

size_t charge_for(uint64_t bytes) { return bytes + MPI_BSEND_OVERHEAD; }

bool has_room(uint64_t bytes) { return buffer.attached && buffer.used + charge_for(bytes) <= buffer.bytes; }

std::string why_no_room(uint64_t bytes) {
    if (!buffer.attached) return "No buffer is attached: MPI_Buffer_attach one first";
    return "Insufficient space in the attached buffer: the message needs " + std::to_string(charge_for(bytes)) +
           " bytes (MPI_BSEND_OVERHEAD with it), " + std::to_string(buffer.used) + " of " +
           std::to_string(buffer.bytes) + " are in use";
}

}  // namespace

int attach_buffer(void* address, size_t bytes) {
    if (buffer.attached) {
        note_detail("A buffer is attached already: MPI_Buffer_detach it first");
        return MPI_ERR_BUFFER;
    }
    buffer = {true, address, bytes, 0};
    return MPI_SUCCESS;
}

int detach_buffer(void** address, size_t* bytes) {
    if (!buffer.attached) {
        note_detail("No buffer is attached");
        return MPI_ERR_BUFFER;
    }
    progress_until([] { return buffer.used == 0; });
    *address = buffer.address;
    *bytes = buffer.bytes;
    buffer = {};
    return MPI_SUCCESS;
}

int buffered_send(Comm& comm, int peer, int tag, const Payload& payload) {
    if (peer == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!has_room(payload.bytes)) progress();
    if (!has_room(payload.bytes)) {
        note_detail(why_no_room(payload.bytes));
        return MPI_ERR_BUFFER;
    }

    Request* request = new_request(Request::Kind::send);
    request->comm = &comm;
    comm_retain(comm);
    request->copy = std::make_unique<char[]>(payload.bytes + 1);
    if (payload.type == nullptr) {
        if (payload.bytes != 0) std::memcpy(request->copy.get(), payload.base, payload.bytes);
    } else {
        payload.type->pack(payload.base, payload.count, 0, payload.bytes, request->copy.get());
    }
    buffer.used += charge_for(payload.bytes);
    start_send(*request, comm, Channel::p2p, peer, tag, {request->copy.get(), payload.bytes, nullptr, 0},
               Mode::standard);
    request->r_bytes = payload.bytes;
    if (request->is_done())
        free_request(request);
    else
        detach_request(request);
    return MPI_SUCCESS;
}

void free_buffer_space(uint64_t bytes) { buffer.used -= charge_for(bytes); }

}  // namespace viaduct::mpi
