// SPDX-License-Identifier: BSD-2-Clause
// The debugging mode (CMPI_CHECK=1, docs/mpi-check.md): collective calls that do not fit together, memory that two
// operations under way use, and what is left at MPI_Finalize and when the process ends. All is called with the engine's
// lock held. When the mode is off, calls that are no hot path look at `on` or `noting`, and hot paths do not even that:
// see begin().
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace viaduct::mpi {
class Activity;
class Datatype;
class Schedule;
struct Communicator;
struct Comm;
struct Operator;
namespace coll {
struct Items;
class Numbers;
struct Shares;
struct TypedShares;
}  // namespace coll
}  // namespace viaduct::mpi

namespace viaduct::mpi::checking {

// Whether calls are compared: from before the first message of the program until MPI_Finalize.
extern bool on;
// Whether objects are noted: also before the job begins, as info objects and error handlers may be made then, and after
// MPI_Finalize, as sessions may go on. It is unknown until the first object is made, or the job begins.
enum class Noting : uint8_t { unknown, no, yes };
extern std::atomic<Noting> noting;
inline bool may_note() { return noting.load(std::memory_order_relaxed) != Noting::no; }
// Finds out what is unknown.
bool is_noting();
// Turns the mode on, once the modules are open. From then on each send of the program has a request of its own, because
// no module sends at once; and publish() answers kCallToNote.
void begin();
// Instead, when the mode is not asked for.
void stay_off();
// Given by the body of a function that has succeeded: its entry, which knows the arguments, calls note_made().
constexpr int kCallToNote = -2;

// What a collective call moves, told by the functions of coll:: before they fill their schedule.
void describe(Schedule& s);
void describe_bcast(Schedule& s, const coll::Items& items, int root);
void describe_gather(Schedule& s, const coll::Items& in, const coll::Shares& out, int root);
void describe_scatter(Schedule& s, const coll::Shares& in, const coll::Items& out, int root);
void describe_allgather(Schedule& s, const coll::Items& in, const coll::Shares& out);
void describe_alltoall(Schedule& s, const coll::Shares& in, const coll::Shares& out);
void describe_alltoallw(Schedule& s, const coll::TypedShares& in, const coll::TypedShares& out);
constexpr int kNoRoot = -100;
void describe_reduction(Schedule& s, MPI_Count count, const Datatype& type, const Operator& op, int root = kNoRoot);
void describe_reduce_scatter(Schedule& s, const coll::Numbers& counts, const Datatype& type, const Operator& op);

// Waits for all members to come to the call of that schedule, and ends the job when theirs does not fit this one.
void meet(Schedule& s, const char* function);
// The same for a call that does not wait: `then` goes on when the others have come. Takes `then` over.
Activity* meet_first(Schedule& s, const char* function, Activity* then);
// A collective call without a schedule of its own, by its name only.
void meet_by_name(Communicator& comm, const char* function);

// Objects that the program has to free, each with the call that made it.
enum class Kind { comm, datatype, group, op, win, request, message, info, errhandler, keyval, session };
void note_made(Kind kind, int handle, std::string call);
void freed(Kind kind, int handle);

// A communicator that ends drops messages that no receive has taken.
void at_end_of(const Comm& comm);
// In MPI_Finalize, while the communicators of the world are there; a session may be open, and go on.
void at_end(bool session_is_open);
// When the process ends, and is not between MPI_Init and MPI_Finalize; the first may be asked without the lock.
bool tells_at_exit();
void at_exit();

}  // namespace viaduct::mpi::checking
