// SPDX-License-Identifier: BSD-2-Clause
// A share from each process to each. All pairs at once, but only so many at a time that queues stay short.
#include <algorithm>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/node_coll.hpp"

namespace viaduct::mpi::coll {
namespace {

constexpr int kAtOnce = 32;             // partners whose messages are under way together
constexpr MPI_Count kBruckBytes = 256;  // shares up to this are collected on their way
constexpr int kBruckProcesses = 8;

// Calls pair(to, from) for all other partners, in an order in which the first targets all differ.
template <typename PairWith>
void pairs(Schedule& s, int partners, int rank, PairWith&& pair) {
    for (int i = 0; i < partners; ++i) {
        int to = (rank + i) % partners;
        int from = ((rank - i) % partners + partners) % partners;
        pair(to, from);
        if ((i + 1) % kAtOnce == 0) {
            s.round();
        }
    }
    s.round();
}

// Shares travel 2^k processes at a time together with all others that must go so far: log(n) messages instead of n.
void bruck(Schedule& s, Shares in, Shares out) {
    const Datatype& byte = *type_of(MPI_BYTE);
    const int size = s.size();
    const int rank = s.rank();
    const MPI_Count share = in.count * in.type->size;
    char* held = s.bytes(size_t(share) * size_t(size));
    char* away = s.bytes(size_t(share) * size_t(size));
    char* home = s.bytes(size_t(share) * size_t(size));
    for (int i = 0; i < size; ++i) {
        s.copy(in.at((rank + i) % size), in.count, *in.type, held + i * share, share, byte);
    }
    for (int step = 1; step < size; step *= 2) {
        MPI_Count n = 0;
        for (int i = step; i < size; ++i) {
            if (i & step) {
                s.copy(held + i * share, share, byte, away + n++ * share, share, byte);
            }
        }
        s.send(away, n * share, byte, (rank + step) % size);
        s.recv(home, n * share, byte, (rank - step + size) % size);
        s.round();
        n = 0;
        for (int i = step; i < size; ++i) {
            if (i & step) {
                s.copy(home + n++ * share, share, byte, held + i * share, share, byte);
            }
        }
    }
    for (int i = 0; i < size; ++i) {
        s.copy(held + i * share, share, byte, out.at((rank - i + size) % size), out.count, *out.type);
    }
}

// What is in the way is sent first: the buffer is replaced partner by partner through a copy of what goes out.
template <typename Count, typename At, typename Type>
void in_place(Schedule& s, Count count, At at, Type type) {
    const Datatype& byte = *type_of(MPI_BYTE);
    const int size = s.size();
    std::vector<char*> copies(static_cast<size_t>(size), nullptr);
    for (int r = 0; r < size; ++r) {
        if (r != s.rank()) {
            MPI_Count bytes = count(r) * type(r).size;
            copies[size_t(r)] = s.bytes(size_t(bytes));
            s.copy(at(r), count(r), type(r), copies[size_t(r)], bytes, byte);
        }
    }
    s.round();
    pairs(s, size, s.rank(), [&](int to, int from) {
        if (to != s.rank()) {
            s.recv(at(from), count(from), type(from), from);
            s.send(copies[size_t(to)], count(to) * type(to).size, byte, to);
        }
    });
}

}  // namespace

void alltoall(Schedule& s, Shares in, Shares out) {
    if (checking::on) checking::describe_alltoall(s, in, out);
    Communicator& comm = s.comm();
    const bool fits = !comm.inter && is_crowd(comm) && !in.varying && !out.varying &&
                      out.count * out.type->size <= MPI_Count(NodeSegment::large(comm.size)) / comm.size;
    if (NodeColl* const node = fits ? node_of(s) : nullptr) {
        s.note(node_alltoall(*node, in, out));
        return;
    }
    if (in.in_place()) {
        in_place(s, [&](int r) { return out.count_of(r); }, [&](int r) { return out.at(r); },
                 [&](int) -> const Datatype& { return *out.type; });
        return;
    }
    if (!comm.inter && !in.varying && in.count * in.type->size <= kBruckBytes && comm.size >= kBruckProcesses) {
        bruck(s, in, out);
        return;
    }
    // Between two groups of different size some have no partner in a turn; the turns are those of the larger one.
    const int turns = std::max(comm.size, comm.remote_size);
    pairs(s, turns, comm.rank, [&](int to, int from) {
        if (!comm.inter && to == comm.rank) {
            s.copy(in.at(to), in.count_of(to), *in.type, out.at(to), out.count_of(to), *out.type);
            return;
        }
        if (from < comm.remote_size) {
            s.recv(out.at(from), out.count_of(from), *out.type, from);
        }
        if (to < comm.remote_size) {
            s.send(in.at(to), in.count_of(to), *in.type, to);
        }
    });
}

void alltoallw(Schedule& s, TypedShares in, TypedShares out) {
    if (checking::on) checking::describe_alltoallw(s, in, out);
    Communicator& comm = s.comm();
    if (in.in_place()) {
        in_place(s, [&](int r) { return out.counts[size_t(r)]; }, [&](int r) { return out.at(r); },
                 [&](int r) -> const Datatype& { return *out.types[size_t(r)]; });
        return;
    }
    const int turns = std::max(comm.size, comm.remote_size);
    pairs(s, turns, comm.rank, [&](int to, int from) {
        auto t = size_t(to);
        auto f = size_t(from);
        if (!comm.inter && to == comm.rank) {
            s.copy(in.at(to), in.counts[t], *in.types[t], out.at(to), out.counts[t], *out.types[t]);
            return;
        }
        if (from < comm.remote_size) {
            s.recv(out.at(from), out.counts[f], *out.types[f], from);
        }
        if (to < comm.remote_size) {
            s.send(in.at(to), in.counts[t], *in.types[t], to);
        }
    });
}

}  // namespace viaduct::mpi::coll
