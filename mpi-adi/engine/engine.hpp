// SPDX-License-Identifier: BSD-2-Clause
// The engine's own state: the job, the modules in use, the matching of each context. For the engine's sources
// only; all other code uses p2p.hpp.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/wait/cpu_placement.hpp"
#include "mpi-adi/engine/matcher.hpp"
#include "mpi-adi/rte/rte.hpp"

namespace viaduct::mpi {

struct Polled;

enum class Stage { before, running, finalizing, after };

struct Engine {
    Stage stage = Stage::before;
    std::unique_ptr<rte::Runtime> job;
    World world;

    taskinfo_t task{};
    std::deque<process_t> processes;        // never moved: communicators point to them
    std::vector<process_t*> own_processes;  // of this job, by world rank; the list of the world grows
    std::vector<procinfo> infos;
    std::array<std::vector<int>, NPROTO> environment_sizes;
    std::array<std::string, NPROTO> environments;

    std::array<std::string, NPROTO> refusals;  // why a module was left out

    // Modules that carry messages of a peer, the quickest first; of them those that can sleep (all but
    // self).
    protocol* active[NPROTO] = {};
    int active_count = 0;
    protocol* sleepers[NPROTO] = {};
    int sleeper_count = 0;
    unsigned next_sleeper = 0;
    // More ranks need the processors we may use than there are.
    bool crowded = false;
    CpuPlacement placement;  // then, where memory can be shared

    // Matching by context, and the few that were wanted last, by their low bits: a program and its collective
    // calls use several in turn.
    struct Recent {
        uint64_t context = ~uint64_t{0};
        Matcher* matcher = nullptr;
    };
    std::array<Recent, 8> recent;
    std::unordered_map<uint64_t, std::unique_ptr<Matcher>> matchers;
    bool under_pressure = false;  // peers have been asked to send envelopes only

    bool (*serve)() = nullptr;         // what windows do in each pass, while there are any; true when something moved
    bool (*watch)() = nullptr;         // the same of communicators in trouble (robust/state.hpp)
    std::vector<Request*> activities;  // with r_engine pointing to the Activity
    std::vector<std::shared_ptr<Polled>> polled;
};

// Made before everything and never destroyed: a program may leave from anywhere.
extern Engine& engine;

// The matching of a context; made when it is not there.
Matcher& find_matcher(uint64_t context);
inline Matcher& matcher_of(uint64_t context) {
    const Engine::Recent& recent = engine.recent[context % 8];
    return recent.context == context ? *recent.matcher : find_matcher(context);
}
void erase_matcher(uint64_t context);

extern const mpip_upcalls kUpcalls;

// Gives a receive a message that was unexpected; the message's record is used up.
void take_unexpected(Unexpected* message, Request* receive);
// Drops a message that no receive will take.
void discard(Unexpected* message);
// Tells peers to hold data back, or to send again, by how much is unexpected.
void watch_memory();

// Sends and receives on a request that is there already (a persistent one). The type is held when it is not
// yet.
void start_send(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload, Mode mode);
void begin_receive(Request& request, Comm& comm, Channel channel, int peer, int tag, const Payload& payload);

// Which protocols a communicator uses, and what the slowest of them is good for.
void note_protocols(mpip_comm& comm);

// "libcmpi: rank 3 of 8 on host: text" on standard error, in one write: lines of several ranks must not mix.
void say(const std::string& text);

// Joins the job, exchanges addresses, connects. An MPI error class; what went wrong has been said on standard
// error.
[[nodiscard]] int start_job();
// Starts the progress thread where the setting says so: after all that MPI_Init does without the lock.
[[nodiscard]] int start_progress();
// Waits until all messages have left and all processes have come here, then leaves the job.
[[nodiscard]] int leave_job();

}  // namespace viaduct::mpi
