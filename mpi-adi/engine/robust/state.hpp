// SPDX-License-Identifier: BSD-2-Clause
// What a job that goes on after the loss of a process does to its communicators. A module marks a process as lost and
// ends the requests that it has begun with it. The rest is done here, for each communicator that the process is a
// member of:
// - Receives that only lost processes can satisfy end with MPIX_ERR_PROC_FAILED, and those posted later, too.
// - Receives from anywhere end with MPIX_ERR_PROC_FAILED_PENDING, and stay posted, until the program acknowledges.
// - Its collective channel is closed: members that have seen the loss leave a collective call at once, so those that
//   wait for them must not wait on. Those of a window or a file are closed all.
// A channel that is closed ends all receives with its error, and takes messages without giving them to a receive, so
// that their senders go on. MPIX_Comm_revoke closes all channels but control.
// Nothing of this is on the way of a message: watch() runs in each pass of progress while a communicator is in trouble.
// All is called with the engine's lock held.
#pragma once

#include <memory>
#include <vector>

#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi {

struct Communicator;
struct Info;
struct Unexpected;

namespace robust {

struct Rounds;

// One that is lost, and its rank in the group that messages go to, or -1: it is in the local group of an
// inter-communicator.
struct LostMember {
    int process;
    int rank;
};

struct State {
    explicit State(Comm& of);
    ~State();

    Comm& comm;
    process_t** const members;     // what Comm::peers was when the communicator was made
    int closed[kChannels] = {};    // the error with which all that uses the channel ends
    std::vector<LostMember> lost;  // in the order in which this process has heard of it
    size_t acknowledged = 0;       // of them, the first so many
    std::vector<Request*> ended;   // with MPIX_ERR_PROC_FAILED_PENDING, and the program has not been told
    bool watched = false;
    std::vector<process_t*> refusing;  // Comm::peers of one that is revoked
    bool revocation_sent = false;      // to all members that are not lost
    std::unique_ptr<Rounds> rounds;    // agreements, see agreement.hpp
};

// Made when there is none yet.
State& state_of(Comm& comm);

// The loss of a process that does not end the job, told by its module or by another member.
void lost(process_t& process);
bool is_lost(const process_t& process);

// The error of a channel that is closed, else MPI_SUCCESS.
inline int refusal(const Comm& comm, Channel channel) {
    return comm.robust == nullptr ? MPI_SUCCESS : comm.robust->closed[static_cast<unsigned>(channel)];
}
// Whether a receive or a probe of that peer, or of any, has nothing to wait for, and its error.
[[nodiscard]] int loss_for_receive(const Comm& comm, Channel channel, int peer);
void close_channel(Comm& comm, Channel channel, int error);

// Those after which nothing more of a call makes sense, because others do not take part any more.
inline bool is_loss(int error) { return error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED; }

// Drops a message that no receive may have. Its sender does not wait for a receive any more.
void dismiss(Unexpected* message);

// A receive from anywhere that ended with MPIX_ERR_PROC_FAILED_PENDING waits on.
void wait_on(Request& request);

// The program has acknowledged the first so many losses of the communicator. Receives from anywhere that ended because
// of them, and of which it has not been told, wait on: what is acknowledged is reported no more.
void acknowledge(Comm& comm, size_t losses);

// From now on each pass of progress sees to what is in trouble, until nothing is.
void start_watch();

// Whether the loss of some process does not end this job.
bool goes_on();

// The life of communicators.
void attached(Comm& comm);
void detached(Comm& comm);

// Begins to connect a process, before any message goes to it: nothing but the end of a connection shows the end of a
// process whose loss does not end the job. The last descriptors of this process stay for connections that carry
// messages, and for the program.
void connect_early(process_t& process);
// The info key cmpi_robust = true of a communicator: from now on the loss of its members does not end the job.
void use_hint(const Info& given, Comm& comm);
// Of none: before modules are opened. Connections are made at the start then: the end of a process to which there is no
// connection is found by nothing but a send to it.
void forgive_all();

}  // namespace robust
}  // namespace viaduct::mpi
