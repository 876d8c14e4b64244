// SPDX-License-Identifier: BSD-2-Clause
// A window: what the program may query, what this process has of each member, and the epoch it is in.
// Which file does what: make_window.cpp makes windows, origin.cpp begins operations, target.cpp serves those
// of others, active.cpp and passive.cpp open and close epochs. All is called with the engine's lock held.
#pragma once

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/engine/rma/awaited.hpp"
#include "mpi-adi/engine/rma/foreign.hpp"
#include "mpi-adi/engine/rma/remote.hpp"
#include "mpi-adi/engine/rma/shared_region.hpp"
#include "mpi-adi/engine/rma/wire.hpp"

namespace viaduct::mpi::rma {

class Target;

enum class LockKind : uint8_t { none, shared, exclusive, unchecked };

// The state of one member of a window, itself included.
// What every operation looks at stands together.
struct alignas(64) Member {
    char* direct = nullptr;          // where the window lies here; null: it does not
    MemberLine* line = nullptr;      // locks and guard, where several processes reach the memory; else null
    MPI_Aint size = 0;               // bytes
    int disp_unit = 1;
    LockKind held = LockKind::none;  // by this process, at that member
    bool shared = false;             // `direct` is memory that all members of the host have mapped

    std::unique_ptr<Foreign> foreign;  // memory that this process reaches by system calls
    std::unique_ptr<Remote> remote;    // memory that this process' NIC reaches
    MPI_Aint base = 0;               // of the window in that process; 0 in dynamic windows
    bool asked = false;              // for its lock, by one thread
    bool granted = false;            // the answer to that, where it comes by message
    bool accessed = false;           // in the group of MPI_Win_start
    bool exposed = false;            // in the group of MPI_Win_post
    unsigned posts = 0;              // MPI_Win_post there that no MPI_Win_start here has used
    unsigned completes = 0;          // MPI_Win_complete there that no MPI_Win_wait here has seen

    unsigned outstanding = 0;  // transfers from or to buffers of the program
    bool sent = false;         // something since the last flush that nothing comes back for
    bool unflushed = false;    // something of that kind has not asked for its flush itself
    uint64_t flushes = 0;      // asked for
    uint64_t flushed = 0;      // answered
    AwaitedQueue awaited;      // answers to inline operations
    int error = MPI_SUCCESS;   // of an operation that was found out later

    Exclusion exclusion() const { return {line == nullptr ? nullptr : &line->guard, shared}; }
};

// The epoch as an origin. A fence opens one that begins with the first operation only: without any, the
// program may go on with another kind.
enum class Epoch : uint8_t { none, fence, started, locked, locked_all };

struct Window {
    Window();
    ~Window();

    MPI_Win handle = MPI_WIN_NULL;
    Communicator* comm = nullptr;  // private to the window
    int flavor = MPI_WIN_FLAVOR_CREATE;
    int model = MPI_WIN_UNIFIED;
    void* base = nullptr;
    MPI_Aint size = 0;
    int disp_unit = 1;
    std::vector<Member> members;
    unsigned group = 0;  // how many members

    Epoch epoch = Epoch::none;
    bool fence_used = false;  // an operation has begun since the fence
    bool settled = false;     // see settle()
    unsigned locks = 0;       // held by MPI_Win_lock
    bool exposed = false;     // between MPI_Win_post and MPI_Win_wait
    std::atomic<bool> found_ended{false};  // an operation has found that a member's process has ended

    // This process reaches all members' memory itself: nothing is ever sent but synchronisation.
    bool all_direct = false;
    std::unique_ptr<SharedRegion> region;
    void* own_memory = nullptr;          // of an allocated window that is not shared
    std::unique_ptr<Exposed> exposed_memory;  // to the NICs of members on other hosts
    std::unique_ptr<Exposed> exposed_lock;
    std::unique_ptr<MemberLine> own_line;  // where no neighbour shares one
    Ranges attached;                     // of a dynamic one
    unsigned empty_attached = 0;         // ranges without a byte, which may lie where others do
    std::unique_ptr<Target> target;
    ProgressWait wait;   // of a program that asks again and again
    unsigned calls = 0;  // see is_time_to_look()
    uint32_t next_reply = 0;

    Errhandler* errhandler = nullptr;
    AttributeSet attributes;
    std::string name;
    std::map<std::string, std::string> hints;

    Member& member(int rank) { return members[static_cast<size_t>(rank)]; }
    Member& self() { return member(comm->rank); }
    int group_size() const { return static_cast<int>(group); }
};

extern NeverDestroyed<ObjectTable<Window, HandleType::win>> windows;
inline Window* win_of(MPI_Win handle) { return windows->find(handle); }
// Runs the error handler of the window; null: that of the world.
[[nodiscard]] int tell(Window* window, int code, const char* function);
// The same at the end of the MPI function.
[[nodiscard]] int raise(Window* window, int code, const char* function);

// Arguments and, as far as one process can see, memory have been checked; collective over the communicator.
[[nodiscard]] int win_create(Communicator& comm, void* base, MPI_Aint size, int disp_unit, int refused,
                             const Info* hints, Window** made);
[[nodiscard]] int win_allocate(Communicator& comm, MPI_Aint size, int disp_unit, int refused, const Info* hints,
                               bool shared, Window** made);
[[nodiscard]] int win_create_dynamic(Communicator& comm, int refused, const Info* hints, Window** made);
void win_set_hints(Window& window, const Info& hints);
[[nodiscard]] int win_free(Window* window);
[[nodiscard]] int win_attach(Window& window, void* base, MPI_Aint size);
[[nodiscard]] int win_detach(Window& window, const void* base);

// Active target.
[[nodiscard]] int fence(Window& window, int assertion);
[[nodiscard]] int start(Window& window, const Group& group);
[[nodiscard]] int complete(Window& window);
[[nodiscard]] int post(Window& window, const Group& group);
// Without `finished`: waits.
[[nodiscard]] int wait_exposure(Window& window, bool* finished);

// Passive target.
[[nodiscard]] int lock(Window& window, LockKind kind, int rank, bool check);
[[nodiscard]] int unlock(Window& window, int rank);
[[nodiscard]] int lock_all(Window& window, bool check);
[[nodiscard]] int unlock_all(Window& window);
// rank < 0: all members.
[[nodiscard]] int flush(Window& window, int rank, bool local);
[[nodiscard]] int sync(Window& window);

// How other members are reached: by memory, system_calls, nic or messages. One word where it is the same for all, else
// "memory=3 nic=4".
std::string access_ways(const Window& window);
// The same for accumulates of one element of 4 or 8 bytes at its alignment.
std::string atomic_ways(const Window& window);

// Used by those files among each other.

// Whether the epoch lets operations be made to that member, with nothing to wait for first.
inline bool access_is_open(const Window& window, const Member& member) {
    if (window.epoch == Epoch::locked_all || window.epoch == Epoch::locked)
        return member.held != LockKind::none;
    return window.epoch == Epoch::fence || (window.epoch == Epoch::started && member.accessed);
}
// Whether flushes are allowed; rank < 0: of all members.
inline bool is_passive(const Window& window, int rank) {
    if (window.epoch == Epoch::locked_all) return true;
    return window.epoch == Epoch::locked &&
           (rank < 0 || window.members[static_cast<size_t>(rank)].held != LockKind::none);
}
// An operation is being made: a fence's epoch counts from now on.
inline void note_access(Window& window) {
    window.fence_used = window.epoch == Epoch::fence;
    window.settled = false;
}
// Whether an operation may be made to that member now; waits for what must be there first.
[[nodiscard]] int begin_access(Window& window, int rank);
// Until no buffer of the program is in use for that member; and, in flush_members, until all has been done
// there.
void wait_local(Window& window, int rank);
[[nodiscard]] int flush_members(Window& window, int first, int last);
[[nodiscard]] int take_error(Member& member);
// Sends an InlineOp without data; to oneself it is delivered at once.
void tell(Window& window, int rank, const InlineOp& inline_op);
void serve_window(Window& window, bool* moved);
// Orders loads and stores of this process and of its neighbours in shared memory.
inline void order_memory() { std::atomic_thread_fence(std::memory_order_seq_cst); }
// After a locked step of the processor others see all that this process has stored before: until the next
// operation, a flush has nothing to wait for. True of x86, whose locked instructions are fences, whichever
// order was requested; elsewhere nothing is settled.
inline void note_locked_step(Window& window) {
#if defined(__x86_64__) || defined(__i386__)
    window.settled = true;
#else
    (void)window;
#endif
}
// Of one flush only, so that one without operations is the fence some programs take it for.
inline void settle(Window& window) {
    if (window.settled)
        window.settled = false;
    else
        order_memory();
}
// A program may ask again and again, by nothing but operations on shared memory and flushes, for what another
// process stores there once it has been served by this one. In such calls, which take nanoseconds, a pass of
// progress is made now and then.
inline bool is_time_to_look(Window& window) {
    constexpr unsigned kCallsBetweenLooks = 128;
    return ++window.calls % kCallsBetweenLooks == 0;
}
// Waits until something holds that others bring about in shared memory, where no event tells of it.
void wait_for_memory(const Window& window, bool (*holds)(void*), void* argument);
template <typename Condition>
void wait_for_memory(const Window& window, Condition&& condition) {
    using Plain = std::remove_reference_t<Condition>;
    wait_for_memory(window, [](void* argument) { return (*static_cast<Plain*>(argument))(); }, &condition);
}
[[nodiscard]] int barrier(Window& window);
// Whether a member has failed. Then no answer, lock or meeting of any member is waited for.
inline bool has_lost(const Window& window) {
    if (window.found_ended.load(std::memory_order_relaxed)) return true;
    return window.comm->robust != nullptr && !window.comm->robust->lost.empty();
}

}  // namespace viaduct::mpi::rma
