// SPDX-License-Identifier: BSD-2-Clause
// Communicators as the program sees them: groups, contexts, error handler, attributes, name, hints, topology.
#pragma once

#include <mpi.h>

#include <climits>
#include <functional>
#include <memory>
#include <string>

#include "mpi-adi/engine/attribute.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/group.hpp"
#include "mpi-adi/engine/info.hpp"
#include "mpi-adi/engine/p2p.hpp"
#include "mpi-adi/engine/topology.hpp"

namespace viaduct::mpi {

// Largest tag of the program, the value of the attribute MPI_TAG_UB: every number that is not negative.
constexpr int kMaxTag = INT_MAX;
// Tags of the library's own on the collective channel. A bit above the largest keeps the parts of partitioned messages
// apart from collective calls.
constexpr int kMaxOwnTag = 0x1fffffff;
constexpr int kPartTags = 0x20000000;

namespace coll {
struct NodeColl;
}

struct Communicator : Comm {
    MPI_Comm handle = MPI_COMM_NULL;
    Group* local = nullptr;
    Group* remote = nullptr;  // the local group again unless inter
    Errhandler* errhandler = nullptr;
    AttributeSet attributes;
    std::string name;
    std::unique_ptr<Info> hints;
    std::unique_ptr<Topology> topology;
    // Of an inter-communicator: the local group among itself, for the local half of collective calls.
    Communicator* within = nullptr;
    Communicator* around = nullptr;  // of such a local half: the inter-communicator
    // The file whose private communicator this is: errors are told to its handler.
    MPI_File file = MPI_FILE_NULL;
    std::shared_ptr<coll::NodeColl> node;  // the way of collective calls through memory, once there is one
    bool node_was_tried = false;
    int collective_tag = 0;  // of the next collective call: all processes make them in one order
    std::vector<process_t*> processes;  // what Comm::peers shows

    int next_tag() {
        int tag = collective_tag;
        collective_tag = (collective_tag + 1) & kMaxOwnTag;
        return tag;
    }
    // A call that failed by its arguments takes part in nothing: the next call of this process is the one that the
    // other processes make now.
    void give_back_tag(int tag) { collective_tag = tag; }
};

// The communicator of a handle, or null.
Communicator* comm_of(MPI_Comm handle);
// World, self and those that the program has made, as long as it has their handles.
void for_each_comm(const std::function<void(Communicator&)>& each);
// The name of the communicator that a context belongs to, with a number when it has none.
std::string name_of_context(uint64_t context);
Communicator* world_comm();  // null outside of MPI_Init and MPI_Finalize
Communicator* self_comm();
// All processes of the job, for what belongs to no communicator of the program: communicators made from groups.
Communicator& base_comm();

// A context that no other communicator has or will have, of this job and of those it meets; its owner is this process.
uint64_t new_context();
// A number that the processes of this node and job share, and no others of the jobs that have met.
uint32_t own_node();

// A communicator ready for messages, with a handle unless `internal`. Takes over one reference of each group. The error
// handler is the parent's.
Communicator* make_intra(Group* group, uint64_t context, const Communicator* parent, bool internal = false,
                         Communicator* around = nullptr);
Communicator* make_inter(Group* local, Group* remote, uint64_t recv_context, uint64_t send_context,
                         const Communicator* parent);

// Takes over the hints of the MPI standard that have an effect; others are ignored, as the standard allows.
void add_hints(const Info& given, std::unique_ptr<Info>& hints);

// Runs the attributes' delete functions and drops the program's reference.
[[nodiscard]] int comm_free(Communicator* comm);

// MPI_COMM_WORLD and MPI_COMM_SELF, at the start and the end of MPI.
[[nodiscard]] int mpi_setup();
[[nodiscard]] int mpi_teardown(bool session_is_open);

}  // namespace viaduct::mpi
