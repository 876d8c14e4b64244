// SPDX-License-Identifier: BSD-2-Clause
// Barrier and broadcast.
#include <algorithm>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/node_coll.hpp"

namespace viaduct::mpi::coll {
namespace {

// From here on a tree would send every byte log(n) times from the root; scattering and collecting sends it twice.
constexpr MPI_Count kScatterBytes = 256 << 10;
constexpr int kScatterProcesses = 8;

// A token to the process 2^k ahead in round k: all have a token of all after log2(n) rounds.
void barrier_within(Schedule& s) {
    const Datatype& nothing = *type_of(MPI_BYTE);
    for (int step = 1; step < s.size(); step *= 2) {
        s.send(nullptr, 0, nothing, (s.rank() + step) % s.size());
        s.recv(nullptr, 0, nothing, (s.rank() - step + s.size()) % s.size());
        s.round();
    }
}

void binomial(Schedule& s, Items items, int root) {
    const int size = s.size();
    const int relative = (s.rank() - root + size) % size;
    int mask = 1;
    while (mask < size && !(relative & mask)) {
        mask *= 2;
    }
    if (relative) {
        s.recv_whole(items.at(0), items.count, *items.type, (relative - mask + root) % size);
        s.round();
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (relative + mask < size) {
            s.send(items.at(0), items.count, *items.type, (relative + mask + root) % size);
        }
    }
    s.round();
}

// The root deals out equal pieces of bytes down a binomial tree, then all pass their pieces round a ring.
void scatter_and_ring(Schedule& s, char* data, MPI_Count bytes, int root) {
    const Datatype& type = *type_of(MPI_BYTE);
    const int size = s.size();
    const int relative = (s.rank() - root + size) % size;
    const MPI_Count piece = (bytes + size - 1) / size;
    auto begin = [&](int r) { return std::min<MPI_Count>(bytes, r * piece); };
    auto world = [&](int r) { return (r + root) % size; };
    int mask = 1;
    while (mask < size && !(relative & mask)) {
        mask *= 2;
    }
    if (relative) {
        MPI_Count first = begin(relative);
        s.recv(data + first, begin(std::min(size, relative + mask)) - first, type, world(relative - mask));
        s.round();
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (relative + mask < size) {
            MPI_Count first = begin(relative + mask);
            s.send(data + first, begin(std::min(size, relative + 2 * mask)) - first, type, world(relative + mask));
        }
    }
    s.round();
    for (int i = 0; i + 1 < size; ++i) {
        int out = (relative - i + size) % size;
        int in = (out - 1 + size) % size;
        s.send(data + begin(out), begin(out + 1) - begin(out), type, world((relative + 1) % size));
        s.recv(data + begin(in), begin(in + 1) - begin(in), type, world((relative - 1 + size) % size));
        s.round();
    }
}

}  // namespace

void bcast_within(Schedule& s, Items items, int root) {
    const MPI_Count bytes = items.count * items.type->size;
    if (bytes < kScatterBytes || s.size() < kScatterProcesses) {
        binomial(s, items, root);
        return;
    }
    if (items.type->contiguous) {
        scatter_and_ring(s, items.at(0) + items.type->true_lb, bytes, root);
        return;
    }
    char* packed = s.bytes(size_t(bytes));
    const Datatype& byte = *type_of(MPI_BYTE);
    if (s.rank() == root) {
        s.copy(items.base, items.count, *items.type, packed, bytes, byte);
        s.round();
    }
    scatter_and_ring(s, packed, bytes, root);
    if (s.rank() != root) {
        s.copy(packed, bytes, byte, items.at(0), items.count, *items.type);
    }
}

void barrier(Schedule& s) {
    if (checking::on) checking::describe(s);
    Communicator& comm = s.comm();
    if (!comm.inter) {
        if (NodeColl* const node = node_of(s))
            s.note(node_barrier(*node));
        else
            barrier_within(s);
        return;
    }
    // All here, then a word between the first ones of both sides, then all here again.
    s.through(*comm.within);
    barrier_within(s);
    const Datatype& nothing = *type_of(MPI_BYTE);
    if (comm.rank == 0) {
        s.through(comm);
        s.send(nullptr, 0, nothing, 0);
        s.recv(nullptr, 0, nothing, 0);
        s.round();
        s.through(*comm.within);
    }
    bcast_within(s, {nullptr, 0, &nothing}, 0);
}

void bcast(Schedule& s, Items items, int root) {
    if (checking::on) checking::describe_bcast(s, items, root);
    Communicator& comm = s.comm();
    if (!comm.inter) {
        int error = MPI_SUCCESS;
        NodeColl* const node = is_crowd(comm) ? node_of(s) : nullptr;
        if (node != nullptr && node_bcast(*node, items, root, &error))
            s.note(error);
        else
            bcast_within(s, items, root);
    } else if (root == MPI_ROOT) {
        s.send(items.base, items.count, *items.type, 0);
    } else if (root != MPI_PROC_NULL) {
        if (comm.rank == 0) {
            s.recv_whole(items.at(0), items.count, *items.type, root);
            s.round();
        }
        s.through(*comm.within);
        bcast_within(s, items, 0);
    }
}

}  // namespace viaduct::mpi::coll
