// SPDX-License-Identifier: BSD-2-Clause
// Sends and receives. A short send goes straight to the module and needs no request; a receive looks at what
// is there and otherwise waits in the matcher's queue for arrived().
#include <algorithm>
#include <new>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi {
namespace {

int mode_for_module(Mode mode) {
    switch (mode) {
        case Mode::synchronous:
            return MPIP_MODE_SYNC;
        case Mode::ready:
            return MPIP_MODE_READY;
        case Mode::standard:
        case Mode::buffered:
            break;
    }
    return MPIP_MODE_STANDARD;
}

// True when the message has left and its buffer is free; else a request is needed.
bool send_at_once(Comm& comm, Channel channel, int peer, int tag, const Payload& payload, Mode mode,
                  int* error) {
    process_t* process = comm.peers[peer];
    int answer = MPIP_ERR_NO_MEM;
    try {
        answer = process->p_proto->pt_fsend(
            process, payload.base, payload.type == nullptr ? payload.bytes : payload.count, payload.type, tag,
            &comm.channels[static_cast<unsigned>(channel)], mode_for_module(mode) | MPIP_MODE_TRY);
    } catch (const std::bad_alloc&) {
        // A receive of the same call may be posted already, in a record on the stack.
    }
    if (answer == MPIP_AGAIN) return false;
    *error = answer;
    return true;
}

void queue_send(Request& request) {
    mpip_enqsend(request.r_proc, &request);
    try {
        request.r_proc->p_proto->pt_queuedsend(request.r_proc);
    } catch (const std::bad_alloc&) {
        end_job(MPI_ERR_NO_MEM, "a message is half sent and there is no memory for the rest");
    }
}

// The matched message, or a place in the queue.
inline void start_receive(Matcher& matcher, Request& request) {
    if (Unexpected* message = matcher.find_or_post(&request)) {
        matcher.remove(message);
        take_unexpected(message, &request);
    }
}

// In a reduction or barrier both ends send at the same time, so the message of the other one is on its way.
inline void wait_for_receive(const Request& request, Channel channel) {
    channel == Channel::p2p ? progress_until_received(request) : progress_until_done(request);
}

int error_of(const Request& receive) {
    if (receive.r_error != MPI_SUCCESS) [[unlikely]]
        note_failed_request(receive);
    return receive.r_error;
}

void count_on(Request& request, Comm& comm) {
    request.comm = &comm;
    comm_retain(comm);
}

}  // namespace

Payload payload_of(const void* base, uint64_t count, const Datatype& type) {
    char* const start = static_cast<char*>(const_cast<void*>(base));
    const uint64_t bytes = count * static_cast<uint64_t>(type.size);
    if (type.contiguous || bytes == 0) return {start + type.true_lb, bytes, nullptr, 0};
    return {start, bytes, &type, count};
}

int send(Comm& comm, Channel channel, int peer, int tag, const Payload& payload, Mode mode) {
    if (peer == MPI_PROC_NULL) return MPI_SUCCESS;
    int error = MPI_SUCCESS;
    if (mode != Mode::synchronous && send_at_once(comm, channel, peer, tag, payload, mode, &error))
        return error;
    Request request;
    request.kind = Request::Kind::send;
    set_up_send(request, comm, channel, peer, tag, payload, mode_for_module(mode));
    queue_send(request);
    progress_until_done(request);
    return request.r_error;
}

bool send_now(Comm& comm, Channel channel, int peer, int tag, const void* base, size_t bytes) {
    int error = MPI_SUCCESS;
    return send_at_once(comm, channel, peer, tag, {const_cast<void*>(base), bytes, nullptr, 0},
                        Mode::standard, &error);
}

Request* isend(Comm& comm, Channel channel, int peer, int tag, const Payload& payload, Mode mode) {
    Request* request = new_request(Request::Kind::send);
    count_on(*request, comm);
    start_send(*request, comm, channel, peer, tag, payload, mode);
    return request;
}

void start_send(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload,
                Mode mode) {
    if (peer == MPI_PROC_NULL) return complete_as_no_process(request);
    request.no_process = false;
    int error = MPI_SUCCESS;
    if (mode != Mode::synchronous && send_at_once(comm, channel, peer, tag, payload, mode, &error)) {
        request.r_error = error;
        request.r_state = MPIP_REQ_DONE;
        return;
    }
    set_up_send(request, comm, channel, peer, tag, payload, mode_for_module(mode));
    if (payload.type != nullptr && request.type == nullptr) hold_type(request, payload.type);
    queue_send(request);
}

int recv(Comm& comm, Channel channel, int peer, int tag, const Payload& payload, MPI_Status* status) {
    if (peer == MPI_PROC_NULL) {
        fill_no_process_status(status);
        return MPI_SUCCESS;
    }
    Request request;
    request.kind = Request::Kind::receive;
    set_up_receive(request, comm, channel, peer, tag, payload);
    start_receive(*comm.matchers[static_cast<unsigned>(channel)], request);
    wait_for_receive(request, channel);
    fill_status(request, status);
    return error_of(request);
}

int recv_bytes(Comm& comm, Channel channel, int peer, int tag, void* base, uint64_t bytes,
               MPI_Status* status) {
    Request request;
    request.kind = Request::Kind::receive;
    set_up_receive_of_bytes(request, comm, channel, peer, tag, base, bytes);
    start_receive(*comm.matchers[static_cast<unsigned>(channel)], request);
    wait_for_receive(request, channel);
    if (status != MPI_STATUS_IGNORE) fill_status(request, status);
    return error_of(request);
}

Request* irecv(Comm& comm, Channel channel, int peer, int tag, const Payload& payload) {
    Request* request = new_request(Request::Kind::receive);
    count_on(*request, comm);
    begin_receive(*request, comm, channel, peer, tag, payload);
    return request;
}

Request* irecv_bytes(Comm& comm, Channel channel, int peer, int tag, void* base, uint64_t bytes) {
    Request* request = new_request(Request::Kind::receive);
    count_on(*request, comm);
    set_up_receive_of_bytes(*request, comm, channel, peer, tag, base, bytes);
    start_receive(*comm.matchers[static_cast<unsigned>(channel)], *request);
    return request;
}

void begin_receive(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload) {
    if (peer == MPI_PROC_NULL) return complete_as_no_process(request);
    request.no_process = false;
    set_up_receive(request, comm, channel, peer, tag, payload);
    if (payload.type != nullptr && request.type == nullptr) hold_type(request, payload.type);
    start_receive(*comm.matchers[static_cast<unsigned>(channel)], request);
}

int sendrecv(Comm& comm, Channel channel, int to, int send_tag, const Payload& out, int from, int recv_tag,
             const Payload& in, MPI_Status* status) {
    Request receive;
    receive.kind = Request::Kind::receive;
    if (from == MPI_PROC_NULL) {
        complete_as_no_process(receive);
    } else {
        set_up_receive(receive, comm, channel, from, recv_tag, in);
        start_receive(*comm.matchers[static_cast<unsigned>(channel)], receive);
    }
    const int sent = send(comm, channel, to, send_tag, out);
    progress_until_done(receive);
    fill_status(receive, status);
    return receive.r_error != MPI_SUCCESS ? error_of(receive) : sent;
}

int sendrecv_all(Comm& comm, Channel channel, int tag, std::span<const Swap> swaps) {
    Request receives[kMostSwaps];
    for (size_t i = 0; i < swaps.size(); i++) {
        receives[i].kind = Request::Kind::receive;
        if (swaps[i].from == MPI_PROC_NULL) {
            complete_as_no_process(receives[i]);
            continue;
        }
        set_up_receive(receives[i], comm, channel, swaps[i].from, tag, swaps[i].in);
        start_receive(*comm.matchers[static_cast<unsigned>(channel)], receives[i]);
    }
    int first_error = MPI_SUCCESS;
    const auto note = [&](int error) {
        if (first_error == MPI_SUCCESS) first_error = error;
    };
    for (const Swap& swap : swaps) note(send(comm, channel, swap.to, tag, swap.out));
    size_t come = 0;
    progress_until(
        [&] {
            while (come != swaps.size() && receives[come].is_done()) come++;
            return come == swaps.size();
        },
        [&] { return std::any_of(receives + come, receives + swaps.size(), awaits_one_here); },
        [&](Awaited& what) {
            for (size_t i = come; i < swaps.size(); i++) add_awaited(receives[i], what);
        });
    for (size_t i = 0; i < swaps.size(); i++) note(error_of(receives[i]));
    return first_error;
}

void note_protocols(mpip_comm& comm) {
    comm.c_nprotos = 0;
    comm.c_latency = 0;
    comm.c_bandwidth = 0;
    bool used[NPROTO] = {};
    for (int rank = 0; rank < comm.c_size; rank++) {
        const protocol* module = comm.c_procs[rank]->p_proto;
        if (used[module->pt_number]) continue;
        used[module->pt_number] = true;
        comm.c_proto[comm.c_nprotos++] = module->pt_number;
        comm.c_latency = std::max(comm.c_latency, module->pt_prop.mp_latency_ns);
        comm.c_bandwidth = comm.c_nprotos == 1 ? module->pt_prop.mp_bandwidth_mb
                                               : std::min(comm.c_bandwidth, module->pt_prop.mp_bandwidth_mb);
    }
}

void attach(Comm& comm) {
    for (unsigned i = 0; i < kChannels; i++) {
        mpip_comm& device_comm = comm.channels[i];
        device_comm.c_sndctxt = comm.send_context ^ kContextOf[i];
        device_comm.c_rcvctxt = comm.recv_context ^ kContextOf[i];
        device_comm.c_rank = comm.rank;
        device_comm.c_size = comm.remote_size;
        device_comm.c_flags = comm.inter ? MPIP_COMM_INTERCOMM : 0;
        device_comm.c_procs = comm.peers;
        note_protocols(device_comm);
        comm.matchers[i] = &find_matcher(device_comm.c_rcvctxt);
        comm.matchers[i]->bind(comm.peers, comm.remote_size, &comm);
    }
    comm.direct = !checking::on;
    robust::attached(comm);
}

void detach(Comm& comm) {
    if (checking::on) checking::at_end_of(comm);
    robust::detached(comm);
    for (Matcher*& matcher : comm.matchers) {
        if (matcher == nullptr) continue;
        while (Unexpected* message = matcher->first_message()) {
            matcher->remove(message);
            discard(message);
        }
        erase_matcher(matcher->context());
        matcher = nullptr;
    }
}

}  // namespace viaduct::mpi
