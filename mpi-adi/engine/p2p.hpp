// SPDX-License-Identifier: BSD-2-Clause
// The engine as the MPI layer sees it: processes, communicators as far as messages care, sends and receives,
// requests, progress. Everything here is called with the engine's lock held (Critical), on any thread.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/progress_wait.hpp"
#include "mpi-adi/engine/waits.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::mpi {

class Datatype;
class Matcher;
struct Request;
namespace robust {
struct State;
}

// The job, valid from MPI_Init to MPI_Finalize.
struct World {
    int rank = 0;
    int size = 0;
    // By process number: the ranks of this job, then processes of other jobs in the order in which they were met.
    std::vector<process_t*> processes;
    std::vector<int> nodes;         // equal numbers share a node
    std::vector<uint32_t> numbers;  // each unlike that of any other process of any job that has been met
    int universe_size = 0;              // 0: unknown
    int appnum = -1;                    // below 0: unknown
};
const World& world();
// Of the engine's own messages, at the start and the end of the job.
constexpr uint64_t kJobContext = ~uint64_t{7};
// All process numbers are below this: a context has so much room in front of the bits of kContextOf.
constexpr uint32_t kProcessNumbers = 1u << 29;

inline int world_rank_of(const process_t& process) { return process.p_gid.pg_wrank; }

// A communicator has channels that never match each other: the program's messages, those of collective calls, two
// whose tags are the program's: the plans of partitioned messages, and what makes communicators out of groups; and
// control messages, which pass also when members have failed and when the communicator is revoked (robust/control.hpp).
enum class Channel : unsigned { p2p = 0, collective = 1, partitioned = 2, groups = 3, control = 4 };
inline constexpr unsigned kChannels = 5;
// What a channel adds to the contexts of its communicator. Those of the last three are bits that no context has.
constexpr uint64_t kContextOf[kChannels] = {0, 1, uint64_t{1} << 62, uint64_t{1} << 61, uint64_t{1} << 63};

// What messages need of a communicator; the first part of every communicator. The code that makes one fills the
// plain members and calls attach().
struct Comm {
    // Even and never used by two communicators in the life of a job; see kContextOf.
    uint64_t send_context = 0;
    uint64_t recv_context = 0;
    int rank = 0;                 // own, in the local group
    int size = 0;                 // of the local group
    int remote_size = 0;          // of the group messages go to: the local one, or the other side's
    process_t** peers = nullptr;  // by rank in the remote group; lives until detach()
    bool inter = false;

    mpip_comm channels[kChannels] = {};  // the same for the modules; the engine's
    Matcher* matchers[kChannels] = {};   // the engine's
    int references = 1;          // the program's handle, and what is under way
    // Collective calls may run without a schedule: there is no robust state, and nothing is checked (check/check.hpp).
    bool direct = true;
    bool fails_as_one = false;   // of a window or a file: when a member fails, nothing of it can be relied on
    // Of one that has lost a member, is revoked, or has agreed on something; see robust/state.hpp.
    robust::State* robust = nullptr;
};

// From attach() on messages are matched; those that came before (a peer may be ahead of us in making a
// communicator) are then found. detach() drops what was never received.
void attach(Comm& comm);
void detach(Comm& comm);
// A request under way keeps its communicator alive. The end of one is where communicators are managed.
void comm_destroy(Comm& comm);
inline void comm_retain(Comm& comm) { ++comm.references; }
inline void comm_release(Comm& comm) {
    if (--comm.references == 0) [[unlikely]]
        comm_destroy(comm);
}

// What a message is made of: bytes in one piece at base, or, with a type, `count` items of it at base that
// make `bytes`.
struct Payload {
    void* base = nullptr;
    uint64_t bytes = 0;
    const Datatype* type = nullptr;
    uint64_t count = 0;
};
// Payload of `count` items of a datatype: in one piece whenever the type is contiguous.
Payload payload_of(const void* base, uint64_t count, const Datatype& type);

// Bytes that were received, as a status tells.
inline MPI_Count bytes_of(const MPI_Status& status) {
    return (MPI_Count(unsigned(status.count_hi_and_cancelled) >> 1) << 32) | unsigned(status.count_lo);
}

enum class Mode { standard, buffered, synchronous, ready };

// Peers are ranks in the remote group, MPI_PROC_NULL, or, for receives, MPI_ANY_SOURCE; tags may be
// MPI_ANY_TAG in receives. Arguments have been checked. Results are MPI error classes.
[[nodiscard]] int send(Comm&, Channel, int peer, int tag, const Payload&, Mode = Mode::standard);
[[nodiscard]] int recv(Comm&, Channel, int peer, int tag, const Payload&, MPI_Status* = MPI_STATUS_IGNORE);
// The same for bytes in one piece from a rank, which is what most receives are.
[[nodiscard]] int recv_bytes(Comm&, Channel, int peer, int tag, void* base, uint64_t bytes, MPI_Status*);
// Sends a short message if the module takes it now. False: nothing has happened.
[[nodiscard]] bool send_now(Comm&, Channel, int peer, int tag, const void* base, size_t bytes);
Request* isend(Comm&, Channel, int peer, int tag, const Payload&, Mode = Mode::standard);
Request* irecv(Comm&, Channel, int peer, int tag, const Payload&);
Request* irecv_bytes(Comm&, Channel, int peer, int tag, void* base, uint64_t bytes);
[[nodiscard]] int sendrecv(Comm&, Channel, int to, int send_tag, const Payload& out, int from, int recv_tag,
                           const Payload& in, MPI_Status* = MPI_STATUS_IGNORE);

// Several of these at once, at most kMostSwaps: all receives wait before the first message leaves, and the
// call returns when all have come.
struct Swap {
    int to = MPI_PROC_NULL;
    Payload out;
    int from = MPI_PROC_NULL;
    Payload in;
};
inline constexpr size_t kMostSwaps = 3;
[[nodiscard]] int sendrecv_all(Comm&, Channel, int tag, std::span<const Swap>);

// True when the request is complete; looks only, see progress().
bool done(const Request*);
// Progresses until the request is complete, frees it and gives its error.
[[nodiscard]] int wait(Request*, MPI_Status* = MPI_STATUS_IGNORE);
// Waits for all, frees them, and gives the first error.
[[nodiscard]] int wait_all(Request** requests, int count);
// Frees a complete request and gives its error.
[[nodiscard]] int finish(Request*, MPI_Status* = MPI_STATUS_IGNORE);

// One pass over everything that may move; true when something did. Never sleeps.
bool progress();

// Whether what the request waits for comes from a rank on our processor, where ranks are more than processors
// (core/wait/cpu_placement.hpp); false where that is unknown.
bool awaits_one_here(const Request&);

// The second tells whether an awaited process is on our processor. Any thread may check the condition, with
// the lock held. The third tells what is waited for, when that has become long: it fills an Awaited (wait_page.hpp).
template <class Condition, class Here, class Describe>
void progress_until(Condition condition, Here here, Describe describe) {
    if (EngineLock::enabled()) [[unlikely]] {
        struct All {
            Condition* condition;
            Here* here;
            Describe* describe;
        } all = {&condition, &here, &describe};
        return wait_among_threads({[](void* p) { return bool((*static_cast<All*>(p)->condition)()); },
                                   [](void* p) { return bool((*static_cast<All*>(p)->here)()); },
                                   [](void* p, Awaited& what) { (*static_cast<All*>(p)->describe)(what); }, &all});
    }
    ProgressWait wait;
    ShownWait shown;
    while (!condition()) {
        if (progress()) {
            wait.moved();
            shown.moved();
        } else if (!condition() && wait.wait_a_little(here())) {
            shown.found_nothing(describe);
        }
    }
}
template <class Condition>
void progress_until(Condition condition) {
    progress_until(condition, [] { return false; }, [](Awaited&) {});
}
template <class Condition, class Describe>
void progress_until_one(Condition condition, Describe describe) {
    progress_until(condition, [] { return false; }, describe);
}
// One pass for a program that asks by itself, by `asked`: it must not keep other ranks from running.
template <class Describe>
bool progress_once(ProgressWait& asked, Describe describe) {
    const bool has_moved = progress();
    if (has_moved)
        asked.moved();
    else
        shown_asking.found_nothing(asked.look_again(), describe);
    return has_moved;
}
// Until a request of ours is done.
void progress_until_done(const Request&);
// The same for a receive that nothing was begun beside: its first look may better be a moment later
// (core/wait/poll_delay.hpp).
void progress_until_received(const Request&);

// Work that goes on beside messages (a non-blocking collective): advanced in each pass of progress() until it
// says that it is finished. Then its request, if any, is complete.
class Activity {
public:
    virtual ~Activity() = default;
    // Does what can be done without waiting; must not call progress(). True when finished, with *error set.
    [[nodiscard]] virtual bool advance(int* error) = 0;
    // The rank that it waits for.
    virtual void add_awaited(Awaited&) const {}
};
// Takes the activity over and gives a request that completes with it, and is not cancellable.
Request* start(Activity* activity, Comm* comm);
// A persistent request: each MPI_Start makes and starts another activity.
Request* make_persistent(Comm& comm, std::function<Activity*()> make);

// Stores the program's name of a request; MPI_REQUEST_NULL for a null one. Back: request_of(), in request.hpp. The body
// of the MPI function ends with what it gives: MPI_SUCCESS, or checking::kCallToNote.
[[nodiscard]] int publish(Request* request, MPI_Request* handle);

// The code of a job that is cut short, as of processes that a launcher has to kill.
constexpr int kCutShort = 9;
// Ends the job: a line on standard error, the launcher told, this process ended.
[[noreturn]] void end_job(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace viaduct::mpi
