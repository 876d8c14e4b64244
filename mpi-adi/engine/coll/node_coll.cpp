// SPDX-License-Identifier: BSD-2-Clause
// Making the memory, and waiting in it. See node_coll.hpp.
#include "mpi-adi/engine/coll/node_coll.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/process/offered_memory.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/control.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/engine/word_wait.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi::coll {
namespace {

// Of one process, for all its communicators. Pages that no call has used are not there, so this is more than they take.
constexpr size_t kMostBytes = 128 << 20;
// A call that has to wait for nothing polls no module. Of so many in a row the last one does: others may wait for
// messages of this process.
constexpr unsigned kUnpolled = 8;
// Beside those of the calls, which count from 0.
constexpr int kSetupTag = kMaxOwnTag;

size_t bytes_mapped = 0;

// In front of the rest.
struct alignas(128) Head {
    OfferedMark mark;
};

size_t bytes_with_head(int members) { return sizeof(Head) + NodeSegment::bytes_for(members); }

struct Offer {
    MemoryOffer memory;
    uint64_t bytes;
};

bool all_on_one_node(const Communicator& comm) {
    const World& all = world();
    const int here = all.nodes[size_t(all.rank)];
    return std::all_of(comm.processes.begin(), comm.processes.end(), [&](const process_t* one) {
        const int number = world_rank_of(*one);
        return number < all.size && all.nodes[size_t(number)] == here;
    });
}

bool is_wanted(size_t bytes) {
    return std::strcmp(adi::param_text(adi::Param::node_collectives), "off") != 0 && bytes_mapped + bytes <= kMostBytes;
}

uint32_t current_place() {
    if (!engine.crowded) return 0;
    const int cpu = ::sched_getcpu();
    return cpu < 0 ? 0 : uint32_t(cpu) + 1;
}

class NodeWait final : public WordWait {
  public:
    NodeWait(NodeSegment& segment, const Wanted& wanted) : segment_(segment), wanted_(wanted) {}
    ~NodeWait() {
        if (announced_) segment_.withdraw();
    }
    bool announce() override {
        segment_.announce(wanted_, announced_);
        announced_ = true;
        return !segment_.holds(wanted_);
    }

  private:
    NodeSegment& segment_;
    const Wanted wanted_;
    bool announced_ = false;
};

void describe(const NodeColl& node, const Wanted& wanted, Awaited& what) {
    what.kind = WaitKind::collective;
    what.context = node.comm.recv_context;
    what.transport = "memory";
    for (int rank = 0; rank < node.comm.size; ++rank)
        if (node.segment.awaits(wanted, rank)) what.add(world_rank_of(*node.comm.processes[size_t(rank)]));
}

}  // namespace

NodeColl::NodeColl(Communicator& of, Segment mapped)
    : comm(of), memory(std::move(mapped)), segment(memory.data() + sizeof(Head), of.size, of.rank) {
    bytes_mapped += memory.size();
}

NodeColl::~NodeColl() { bytes_mapped -= memory.size(); }

// The first member makes the memory, all others open it. It is used when all have got it.
NodeColl* make_node_coll(Communicator& comm, int* error) {
    comm.node_was_tried = true;
    if (comm.inter || comm.size < 2 || comm.size > NodeSegment::kMostMembers || !all_on_one_node(comm)) return nullptr;
    (void)base_comm();  // takes the messages that wake us
    const size_t bytes = bytes_with_head(comm.size);
    const Datatype& byte = *type_of(MPI_BYTE);
    Segment memory;
    Offer offer{{}, bytes};
    if (comm.rank == 0 && is_wanted(bytes)) memory = offer_memory("cmpi-coll", bytes, &offer.memory);
    {
        Schedule s(comm, kSetupTag);
        bcast_within(s, {&offer, sizeof offer, &byte}, 0);
        if ((*error = s.run()) != MPI_SUCCESS || offer.memory.mark == 0) return nullptr;
    }
    if (comm.rank != 0 && offer.bytes == bytes && is_wanted(bytes)) (void)open_offered(offer.memory, bytes, &memory);
    std::shared_ptr<NodeColl> made;
    if (memory.valid()) try {
        made = std::make_shared<NodeColl>(comm, std::move(memory));
    } catch (const std::bad_alloc&) {
    }
    int32_t all_good = made != nullptr ? 1 : 0;
    Schedule s(comm, kSetupTag);
    allreduce_within(s, &all_good, 1, *type_of(MPI_INT32_T), *op_of(MPI_MIN));
    if ((*error = s.run()) != MPI_SUCCESS || all_good == 0) return nullptr;
    made->memory.drop_fd();
    comm.node = std::move(made);
    return comm.node.get();
}

void node_wake(NodeColl& node) {
    const Communicator& base = base_comm();
    node.segment.wake([&](int rank) {
        robust::send_control(*node.comm.processes[size_t(rank)], base.channels[unsigned(Channel::control)],
                             robust::Control::wake, {});
    });
}

void node_arrive(NodeColl& node, uint64_t number) {
    if (node.segment.arrive(number, current_place())) node_wake(node);
    if (++node.unpolled >= kUnpolled) {
        node.unpolled = 0;
        (void)progress();
    }
}

int node_wait(NodeColl& node, const Wanted& wanted) {
    NodeSegment& segment = node.segment;
    const Communicator& comm = node.comm;
    if (!segment.holds(wanted)) {
        node.unpolled = 0;
        NodeWait wait(segment, wanted);
        const auto refusal = [&] { return robust::refusal(comm, Channel::collective); };
        progress_until([&] { return segment.holds(wanted) || refusal() != MPI_SUCCESS; },
                       [&] {
                           const uint32_t place = current_place();
                           if (place == 0) return false;
                           segment.tell_place(place);
                           return segment.missing_at(wanted, place);
                       },
                       [&](Awaited& what) { describe(node, wanted, what); });
        if (!segment.holds(wanted)) return refusal();
    }
    if (segment.some_sleep()) node_wake(node);
    return MPI_SUCCESS;
}

int node_barrier(NodeColl& node) {
    const uint64_t number = node.segment.next();
    node_arrive(node, number);
    return node_wait(node, Wanted::all(number));
}

}  // namespace viaduct::mpi::coll
