// SPDX-License-Identifier: BSD-2-Clause
// The pool of requests, their life, and the statuses they leave.
#include "mpi-adi/engine/request.hpp"

#include <new>

#include "mpi-adi/engine/bsend.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/matcher.hpp"
#include "mpi-adi/engine/partitioned.hpp"
#include "mpi-adi/engine/progress_thread.hpp"

namespace viaduct::mpi {

Request* free_requests = nullptr;
int publish_answer = MPI_SUCCESS;
std::atomic<Request*> requests::blocks[requests::kBlocks];

// Never destroyed: a program may leave from anywhere.
Request& sent_at_once = *[] {
    auto* made = new Request();
    made->kind = Request::Kind::send;
    made->r_state = MPIP_REQ_DONE;
    made->handle = kSentAtOnce;
    return made;
}();

namespace {

unsigned blocks_made = 0;
Request* free_nameless_requests = nullptr;  // by posted.next

}  // namespace

// Their number follows the deepest moment of a program.
bool make_named_requests() {
    if (blocks_made == requests::kBlocks) return false;
    auto* block = new Request[requests::kBlock]();
    for (unsigned i = requests::kBlock; i-- > 0;) {
        block[i].name = int(requests::kPrefix << 26 | (blocks_made * requests::kBlock + i));
        block[i].posted.next = free_requests;
        free_requests = &block[i];
    }
    requests::blocks[blocks_made++].store(block, std::memory_order_release);
    return true;
}

// Of those without a name only that which is taken at once lies among the others.
void make_requests() {
    if (make_named_requests()) return;
    Request* request = free_nameless_requests;
    if (request != nullptr) {
        free_nameless_requests = request->posted.next;
    } else {
        request = new Request();
    }
    request->posted.next = nullptr;
    free_requests = request;
}

void free_nameless(Request* request) {
    drop_load(request);
    Comm* const comm = request->comm;
    request->comm = nullptr;
    request->posted.next = free_nameless_requests;
    free_nameless_requests = request;
    if (comm != nullptr) comm_release(*comm);
}

void drop_load(Request* request) {
    if (request->type != nullptr) {
        request->type->release();
        request->type = nullptr;
    }
    if (request->copy != nullptr) {
        request->copy.reset();
        free_buffer_space(request->r_bytes);
    }
    request->owned.reset();
    request->persistent.reset();
    request->generalized.reset();
}

void detach_request(Request* request) {
    if (request->handle != MPI_REQUEST_NULL) {
        request->handle = MPI_REQUEST_NULL;
        request->name = requests::next_name(request->name);
    }
    request->detached = true;
    request->r_flags |= MPIP_REQ_NOTIFY;
}

void hold_type(Request& request, const Datatype* type) {
    request.type = type;
    if (type != nullptr) type->retain();
}

void set_up_send(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload,
                 int mode) {
    mpip_comm& device_comm = comm.channels[static_cast<unsigned>(channel)];
    request.r_state = 0;
    request.r_flags = MPIP_REQ_SEND;
    request.r_error = MPI_SUCCESS;
    request.r_tag = tag;
    request.r_proc = comm.peers[peer];
    request.r_buf = payload.base;
    request.r_bytes = payload.bytes;
    request.r_length = 0;
    request.r_ctxt = device_comm.c_sndctxt;
    request.r_rank = comm.rank;
    request.r_mode = mode;
    request.r_type = payload.type;
    request.r_count = payload.count;
    request.r_id = 0;
    request.r_peereq = 0;
    request.r_data = nullptr;
    request.r_comm = &device_comm;
}

void set_up_receive(Request& request, Comm& comm, Channel channel, int peer, int tag,
                    const Payload& payload) {
    set_up_receive_of_bytes(request, comm, channel, peer, tag, payload.base, payload.bytes);
    request.r_type = payload.type;
    request.r_count = payload.count;
}

void complete_as_no_process(Request& request) {
    request.no_process = true;
    request.r_error = MPI_SUCCESS;
    request.r_length = 0;
    request.r_state = MPIP_REQ_DONE;
}

void complete(Request* request, int error) {
    if (error != MPI_SUCCESS) request->r_error = error;
    mpip_req_done(request);
}

int publish(Request* request, MPI_Request* handle) {
    if (request == nullptr) {
        *handle = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    if (request->name == MPI_REQUEST_NULL) [[unlikely]]
        throw std::bad_alloc();  // name_is_left() was not called
    if (EngineLock::enabled()) [[unlikely]]
        leave_to_progress_thread(*request);
    *handle = request->handle = request->name;
    return publish_answer;
}

void set_count(MPI_Status* status, int64_t bytes) {
    const auto cancelled = static_cast<unsigned>(status->count_hi_and_cancelled) & 1u;
    status->count_lo = static_cast<int>(static_cast<uint64_t>(bytes));
    status->count_hi_and_cancelled =
        static_cast<int>(static_cast<unsigned>(static_cast<uint64_t>(bytes) >> 32 << 1) | cancelled);
}

namespace {

// A function of Fortran: its answer is its last argument, and all are passed by address.
template <typename Function, typename... Arguments>
int call_fortran(Function* function, Arguments*... arguments) {
    MPI_Fint error = MPI_SUCCESS;
    reinterpret_cast<void (*)(Arguments*..., MPI_Fint*)>(reinterpret_cast<void (*)()>(function))(arguments..., &error);
    return error;
}

}  // namespace

// A program may leave out what will not be called, or has no answer to give.
int Generalized::query(MPI_Status* status) const {
    if (query_function == nullptr) return MPI_SUCCESS;
    if (fortran) return call_fortran(query_function, extra_state, reinterpret_cast<MPI_Fint*>(status));
    return query_function(extra_state, status);
}

int Generalized::free() const {
    if (free_function == nullptr) return MPI_SUCCESS;
    return fortran ? call_fortran(free_function, extra_state) : free_function(extra_state);
}

int Generalized::cancel(int complete) const {
    if (cancel_function == nullptr) return MPI_SUCCESS;
    return fortran ? call_fortran(cancel_function, extra_state, &complete) : cancel_function(extra_state, complete);
}

void clear_status(MPI_Status* status) {
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->count_lo = 0;
    status->count_hi_and_cancelled = 0;
}

void fill_status(const Request& request, MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    const bool received_parts =
        request.persistent != nullptr && request.persistent->parts != nullptr && !request.persistent->parts->sends();
    if (request.no_process) {
        fill_no_process_status(status);
    } else if (request.kind != Request::Kind::receive && !received_parts) {
        clear_status(status);
        if (request.kind == Request::Kind::file) set_count(status, request.r_length);
    } else {
        status->MPI_SOURCE = request.r_rank;
        status->MPI_TAG = request.r_tag;
        status->count_hi_and_cancelled = 0;
        set_count(status, request.r_length);
    }
    if (request.cancelled()) status->count_hi_and_cancelled |= 1;
}

void fill_empty_status(MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    clear_status(status);
    status->MPI_ERROR = MPI_SUCCESS;
}

void fill_no_process_status(MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    clear_status(status);
    status->MPI_SOURCE = MPI_PROC_NULL;
}

}  // namespace viaduct::mpi
