// SPDX-License-Identifier: BSD-2-Clause
// A request: the record modules work with, and what the engine and MPI_Request add to it. They come from a
// pool; blocking calls keep theirs on the stack.
#pragma once

#include <atomic>
#include <memory>

#include "mpi-adi/engine/handle.hpp"
#include "mpi-adi/engine/list.hpp"
#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi {

class Partitioned;
struct Polled;
struct Unexpected;

// What MPI_Grequest_start was given.
struct Generalized {
    MPI_Grequest_query_function* query_function;
    MPI_Grequest_free_function* free_function;
    MPI_Grequest_cancel_function* cancel_function;
    void* extra_state;
    bool fortran = false;                 // the functions answer by a last argument
    std::shared_ptr<Polled> polled = {};  // of one that the library asks for its work

    [[nodiscard]] int query(MPI_Status* status) const;
    [[nodiscard]] int free() const;
    [[nodiscard]] int cancel(int complete) const;
};

// The arguments of a persistent request, used again by each MPI_Start.
struct Persistent {
    Comm* comm;
    int peer;
    int tag;
    Payload payload;
    Mode mode;
    bool active;  // between a start and the wait or test that sees the end of it
    std::function<Activity*()> make = {};  // of a request that is an activity; the rest is then unused
    std::shared_ptr<Partitioned> parts = {};  // of one whose message is handed over in parts
};

// Told when a request that it watches is done, inside a call into a module: it neither waits nor sends.
class Watcher {
public:
    // The request is the watcher's to finish.
    virtual void done(Request* request) = 0;

protected:
    ~Watcher() = default;
};

struct Request : mpip_req {
    // The end of the last two is not the usual one. Pending: a receive from anywhere that ended because a process has
    // failed; the program may wait for it again (robust/state.hpp).
    enum class Kind : uint8_t { send, receive, message, activity, file, generalized, pending };

    Kind kind;
    // The program has freed it, or never had it: it goes back to the pool by itself when it is done.
    bool detached = false;
    bool no_process = false;  // of a message from MPI_PROC_NULL
    // MPI_Cancel of it is an error: a collective, partitioned or one-sided operation, or a send and a receive in one.
    bool not_cancellable = false;
    uint64_t order = 0;       // posted receives of a communicator, in sequence
    Link<Request> posted;
    Comm* comm = nullptr;
    const Datatype* type = nullptr;  // held while the request lives
    MPI_Request handle = MPI_REQUEST_NULL;  // while the program has it
    MPI_Request name = MPI_REQUEST_NULL;    // the handle it will have next
    Unexpected* message = nullptr;  // taken out of the queue by a matched probe
    std::unique_ptr<char[]> copy;   // data of a buffered send
    std::unique_ptr<char[]> owned;  // data that goes with the request
    Watcher* watcher = nullptr;     // asks to be told, with MPIP_REQ_NOTIFY
    std::unique_ptr<Persistent> persistent;
    std::unique_ptr<Generalized> generalized;

    bool is_done() const { return (r_state & MPIP_REQ_DONE) != 0; }
    bool cancelled() const { return (r_state & MPIP_REQ_CANCELLED) != 0; }
};

// A request in no state, from the pool, and back. Freeing lets go of type, communicator, handle and copy.
// Requests are made in blocks and never given back to the system; each keeps its place in the table of
// handles, which has 2^20 places: those that the program gets no handle of are made beyond that, too, and
// have no name.
extern Request* free_requests;  // by posted.next; all have names
void make_requests();
// Whether the next request can have a handle: asked before one is published, before anything has begun
// that could not be taken back.
bool make_named_requests();
// What publish() gives; checking::begin() sets it.
extern int publish_answer;
inline bool name_is_left() { return free_requests != nullptr || make_named_requests(); }
// Lets go of one without a name.
void free_nameless(Request* request);
inline Request* new_request(Request::Kind kind) {
    if (free_requests == nullptr) [[unlikely]]
        make_requests();
    Request* request = free_requests;
    free_requests = request->posted.next;
    request->kind = kind;
    request->detached = false;
    request->no_process = false;
    request->not_cancellable = false;
    request->r_state = 0;
    request->r_flags = 0;
    request->r_error = MPI_SUCCESS;
    request->r_length = 0;
    return request;
}
void drop_load(Request* request);
inline bool has_load(const Request* r) {
    const auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
    return (bits(r->type) | bits(r->copy.get()) | bits(r->owned.get()) | bits(r->persistent.get()) |
            bits(r->generalized.get())) != 0;
}

// Of a send that was away before its call returned there is nothing to find or to free: all of them have this
// name, which never ends.
inline constexpr MPI_Request kSentAtOnce =  // not MPI_MESSAGE_NO_PROC, which has the number 0
    int(unsigned(HandleKind::builtin) << 30 | unsigned(HandleType::request) << 26 | 1);
extern Request& sent_at_once;

// Requests by handle. Its generation makes one that has ended differ from its successor's, so that to use it
// again is an error and not another request.
namespace requests {
inline constexpr unsigned kBlock = 64, kIndexMask = (1u << 20) - 1, kBlocks = (kIndexMask + 1) / kBlock;
inline constexpr unsigned kPrefix = unsigned(HandleKind::indirect) << 4 | unsigned(HandleType::request);
extern std::atomic<Request*> blocks[kBlocks];
constexpr MPI_Request next_name(MPI_Request name) {
    return int(kPrefix << 26 | ((unsigned(name) + kIndexMask + 1) & 0x03ffffff));
}
}  // namespace requests

// Null for names of nothing.
inline Request* request_of(MPI_Request handle) {
    if (unsigned(handle) >> 26 != requests::kPrefix) [[unlikely]]
        return handle == kSentAtOnce ? &sent_at_once : nullptr;
    const unsigned index = unsigned(handle) & requests::kIndexMask;
    Request* const block = requests::blocks[index / requests::kBlock].load(std::memory_order_acquire);
    if (block == nullptr) [[unlikely]]
        return nullptr;
    Request* const request = block + index % requests::kBlock;
    return request->handle == handle ? request : nullptr;
}

inline void free_request(Request* request) {
    if (request == &sent_at_once) [[unlikely]]
        return;
    if (request->handle != MPI_REQUEST_NULL) {
        request->handle = MPI_REQUEST_NULL;
        request->name = requests::next_name(request->name);
    } else if (request->name == MPI_REQUEST_NULL) [[unlikely]] {
        return free_nameless(request);
    }
    if (has_load(request)) [[unlikely]]
        drop_load(request);
    Comm* const comm = request->comm;
    request->comm = nullptr;
    request->posted.next = free_requests;  // the next one finds it in the cache
    free_requests = request;
    if (comm != nullptr) comm_release(*comm);
}
// To be called when a request is freed before it is done: the rest happens when it is.
void detach_request(Request* request);

// Lets progress drive the activity, which it takes over, until the request is done.
void begin_activity(Request& request, Activity* activity);

// Fields of a send or receive about to start.
void set_up_send(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload,
                 int mode);
void set_up_receive(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload);
inline void set_up_receive_of_bytes(Request& request, Comm& comm, Channel channel, int peer, int tag,
                                    void* base, uint64_t bytes) {
    mpip_comm& device_comm = comm.channels[static_cast<unsigned>(channel)];
    request.r_state = MPIP_REQ_RECVHEAD;
    request.r_flags = 0;
    request.r_error = MPI_SUCCESS;
    request.r_tag = tag;
    request.r_proc = peer < 0 ? nullptr : comm.peers[peer];
    request.r_buf = base;
    request.r_bytes = bytes;
    request.r_length = 0;
    request.r_ctxt = device_comm.c_rcvctxt;
    request.r_rank = peer;
    request.r_mode = 0;
    request.r_type = nullptr;
    request.r_count = 0;
    request.r_id = 0;
    request.r_peereq = 0;
    request.r_data = nullptr;
    request.r_comm = &device_comm;
}
// The type of a request that may outlive the caller's.
void hold_type(Request& request, const Datatype* type);

// Done with nothing moved, as transfers with MPI_PROC_NULL are.
void complete_as_no_process(Request& request);
// Marks any request done and wakes its waiters.
void complete(Request* request, int error);

void fill_status(const Request& request, MPI_Status* status);
// What the standard calls an empty status: of no request, or one that is not active. Its error is MPI_SUCCESS.
void fill_empty_status(MPI_Status* status);
void fill_no_process_status(MPI_Status* status);
// All of a status but its error, which calls that return one status leave alone.
void clear_status(MPI_Status* status);
void set_count(MPI_Status* status, int64_t bytes);

}  // namespace viaduct::mpi
