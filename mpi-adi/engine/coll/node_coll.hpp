// SPDX-License-Identifier: BSD-2-Clause
// Collective calls through memory that all members of a communicator share (node_segment.hpp): blocking ones within one
// group whose members are on one node. Where ranks are more than processors the switches of the processors are the cost
// of a collective call, and each such call has one: each member says what it has to say and waits once, while messages
// wait in each round.
//
// A member never waits for what another member may do otherwise: whether a call goes this way follows from what all
// members know alike, from the kind of the call and the bytes of a share. A broadcast of another size than the root's
// is an error, as with messages.
#pragma once

#include <memory>

#include "core/shm/segment.hpp"
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/coll/node_segment.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::coll {

// Of a communicator, made when it has had kCallsBefore collective calls, and freed with it.
struct NodeColl {
    NodeColl(Communicator& of, Segment mapped);
    ~NodeColl();
    NodeColl(const NodeColl&) = delete;
    NodeColl& operator=(const NodeColl&) = delete;

    Communicator& comm;
    Segment memory;
    NodeSegment segment;
    unsigned unpolled = 0;  // calls in a row that have polled no module
};

// Longer data goes by messages: what a broadcast or a reduction to all has in all, and what each member gives to other
// calls, which is at most its part of a large buffer.
constexpr uint64_t kMostNodeBytes = 1 << 20;
constexpr int kCallsBefore = 16;

// The way through memory for a call with that tag, or null: messages. It is made by the first call that comes when it
// seems worth it; *error is set when that has failed.
NodeColl* make_node_coll(Communicator& comm, int* error);
inline NodeColl* node_coll(Communicator& comm, int tag, int* error) {
    if (comm.node != nullptr) [[likely]]
        return comm.node.get();
    return tag < kCallsBefore || comm.node_was_tried ? nullptr : make_node_coll(comm, error);
}
// Between two members, messages have no more waits and need less copying: there only barriers, small exchanges and
// reductions of more than a few items are faster this way.
inline bool is_crowd(const Communicator& comm) { return comm.size > 2; }
// The same for a call that has a schedule.
inline NodeColl* node_of(Schedule& s) {
    if (!s.blocks()) return nullptr;
    int error = robust::refusal(s.comm(), Channel::collective);
    NodeColl* const node = error == MPI_SUCCESS ? node_coll(s.comm(), s.tag(), &error) : nullptr;
    s.note(error);
    return node;
}

// The calls. Each gives an MPI error class; shares are equal ones, and in all no more than a large buffer has for each
// member.
[[nodiscard]] int node_barrier(NodeColl& node);
// False: the root has more than kMostNodeBytes, and the data goes by messages.
[[nodiscard]] bool node_bcast(NodeColl& node, Items items, int root, int* error);
[[nodiscard]] int node_gather(NodeColl& node, Items in, Shares out, int root);
[[nodiscard]] int node_scatter(NodeColl& node, Shares in, Items out, int root);
[[nodiscard]] int node_allgather(NodeColl& node, Items in, Shares out);
[[nodiscard]] int node_alltoall(NodeColl& node, Shares in, Shares out);
// Of a built-in operator on items that lie one behind the other; null when it is not that, or too much.
struct NodeReduction {
    OpLoop loop = nullptr;
    size_t item = 0;
};
NodeReduction node_reduction(const Communicator& comm, MPI_Count count, const Datatype& type, const Operator& op,
                             uint64_t most);
[[nodiscard]] int node_allreduce(NodeColl& node, void* inout, MPI_Count count, const NodeReduction& what);
[[nodiscard]] int node_reduce(NodeColl& node, const void* in, void* out, MPI_Count count, const NodeReduction& what,
                              int root);

// What they are made of. The member has come to that call; then until something is there.
void node_arrive(NodeColl& node, uint64_t number);
[[nodiscard]] int node_wait(NodeColl& node, const Wanted& wanted);
// Wakes those that sleep and can go on.
void node_wake(NodeColl& node);
// Until a buffer may be written.
[[nodiscard]] inline int node_wait_free(NodeColl& node, const NodeSegment::Buffer& buffer) {
    return node.segment.is_free(buffer) ? MPI_SUCCESS : node_wait(node, Wanted::all(buffer.free_at));
}

}  // namespace viaduct::mpi::coll
