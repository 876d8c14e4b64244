// SPDX-License-Identifier: BSD-2-Clause
// Reductions: to one process, to all, in shares, and of prefixes. Operators that do not commute are applied in the
// order of ranks everywhere.
#include <algorithm>
#include <cstring>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/node_coll.hpp"
#include "mpi-adi/engine/coll/reduce_order.hpp"

namespace viaduct::mpi::coll {
namespace {

// Where the own contribution lies when `out` may be the input as well.
const void* input(const void* in, const void* out) { return in == MPI_IN_PLACE ? out : in; }

// a op b, where b are the higher ranks: built-in loops and user functions compute inout = in op inout.
void reduce_higher(Schedule& s, char* result, char* higher, MPI_Count count, const Datatype& type, Operator& op) {
    if (op.commutative) {
        s.reduce(higher, result, count, type, op);
        return;
    }
    s.reduce(result, higher, count, type, op);
    s.copy(higher, count, type, result, count, type);
}

// Makes the number of active ranks a power of two: of each pair among the first 2 * excess, the even one gives its
// data to the odd one and waits. Gives the rank among the active ones, or -1.
int fold(Schedule& s, char* inout, char* other, MPI_Count count, const Datatype& type, Operator& op, int excess) {
    const int rank = s.rank();
    if (rank >= 2 * excess) {
        return rank - excess;
    }
    if (rank % 2 == 0) {
        s.send(inout, count, type, rank + 1);
        s.round();
        return -1;
    }
    s.recv(other, count, type, rank - 1);
    s.round();
    s.reduce(other, inout, count, type, op);
    return rank / 2;
}

void unfold(Schedule& s, char* inout, MPI_Count count, const Datatype& type, int excess) {
    const int rank = s.rank();
    if (rank < 2 * excess) {
        if (rank % 2) {
            s.send(inout, count, type, rank - 1);
        } else {
            s.recv(inout, count, type, rank + 1);
        }
        s.round();
    }
}

void recursive_doubling(Schedule& s, char* inout, char* other, MPI_Count count, const Datatype& type, Operator& op,
                        int me, int all, int excess) {
    for (int mask = 1; mask < all; mask *= 2) {
        int partner = unfolded(me ^ mask, excess);
        s.send(inout, count, type, partner);
        s.recv(other, count, type, partner);
        s.round();
        if (partner < s.rank()) {
            s.reduce(other, inout, count, type, op);
        } else {
            reduce_higher(s, inout, other, count, type, op);
        }
    }
}

// Rabenseifner: halve the range each round until each rank has the result of its part, then collect the parts back.
void halve_and_double(Schedule& s, char* inout, char* other, MPI_Count count, const Datatype& type, Operator& op,
                      int me, int all, int excess) {
    const MPI_Aint extent = type.extent();
    struct Level {
        int partner;
        MPI_Count keep, keep_count, give, give_count;
    };
    std::vector<Level> levels;
    MPI_Count first = 0, n = count;
    for (int mask = all / 2; mask > 0; mask /= 2) {
        MPI_Count half = n / 2;
        bool low = !(me & mask);
        Level level{unfolded(me ^ mask, excess), low ? first : first + half, low ? half : n - half,
                    low ? first + half : first, low ? n - half : half};
        s.send(inout + level.give * extent, level.give_count, type, level.partner);
        s.recv(other + level.keep * extent, level.keep_count, type, level.partner);
        s.round();
        s.reduce(other + level.keep * extent, inout + level.keep * extent, level.keep_count, type, op);
        first = level.keep;
        n = level.keep_count;
        levels.push_back(level);
    }
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        s.send(inout + level->keep * extent, level->keep_count, type, level->partner);
        s.recv(inout + level->give * extent, level->give_count, type, level->partner);
        s.round();
    }
}

// Receives the result of a reduction over the other side's first process.
void exchange_first(Schedule& s, const void* out, void* in, MPI_Count count, const Datatype& type) {
    Communicator& comm = s.comm();
    if (comm.rank == 0) {
        s.through(comm);
        s.send(out, count, type, 0);
        s.recv(in, count, type, 0);
        s.round();
        s.through(*comm.within);
    }
}

char* own_copy(Schedule& s, const void* in, MPI_Count count, const Datatype& type) {
    char* copy = s.items(count, type);
    s.copy(in, count, type, copy, count, type);
    return copy;
}

}  // namespace

void allreduce_within(Schedule& s, void* buffer, MPI_Count count, const Datatype& type, Operator& op) {
    if (s.size() == 1 || count == 0) {
        return;
    }
    char* inout = static_cast<char*>(buffer);
    char* other = s.items(count, type);
    const int all = power_below(s.size());
    const int excess = s.size() - all;
    int me = fold(s, inout, other, count, type, op, excess);
    if (me >= 0) {
        bool halve = op.commutative && op.is_builtin() && count >= all && size_t(count * type.size) >= kHalvingBytes;
        (halve ? halve_and_double : recursive_doubling)(s, inout, other, count, type, op, me, all, excess);
    }
    unfold(s, inout, count, type, excess);
}

void reduce_within(Schedule& s, void* buffer, MPI_Count count, const Datatype& type, Operator& op, int root) {
    const int size = s.size();
    if (size == 1 || count == 0) {
        return;
    }
    char* inout = static_cast<char*>(buffer);
    char* other = s.items(count, type);
    // A tree over ranks turned round by the root mixes the order; without that freedom the tree ends at rank 0.
    const int top = op.commutative ? root : 0;
    const int relative = (s.rank() - top + size) % size;
    int mask = 1;
    for (; mask < size && !(relative & mask); mask *= 2) {
        if (relative + mask < size) {
            s.recv(other, count, type, (relative + mask + top) % size);
            s.round();
            reduce_higher(s, inout, other, count, type, op);
        }
    }
    if (relative) {
        s.send(inout, count, type, (relative - mask + top) % size);
        s.round();
    }
    if (top != root) {
        if (s.rank() == top) {
            s.send(inout, count, type, root);
        } else if (s.rank() == root) {
            s.recv(inout, count, type, top);
        }
        s.round();
    }
}

void reduce(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op, int root) {
    if (checking::on) checking::describe_reduction(s, count, type, op, root);
    Communicator& comm = s.comm();
    if (comm.inter) {
        if (root == MPI_ROOT) {
            s.recv(out, count, type, 0);
        } else if (root != MPI_PROC_NULL) {
            char* mine = own_copy(s, in, count, type);
            s.through(*comm.within);
            reduce_within(s, mine, count, type, op, 0);
            if (comm.rank == 0) {
                s.through(comm);
                s.send(mine, count, type, root);
            }
        }
        return;
    }
    const NodeReduction here = node_reduction(comm, count, type, op, NodeSegment::large(comm.size));
    if (NodeColl* const node = here.loop != nullptr ? node_of(s) : nullptr) {
        s.note(node_reduce(*node, input(in, out), out, count, here, root));
        return;
    }
    if (comm.rank == root) {
        if (in != MPI_IN_PLACE) {
            s.copy(in, count, type, out, count, type);
        }
        reduce_within(s, out, count, type, op, root);
    } else if (int top = op.commutative ? root : 0; (comm.rank - top + comm.size) % comm.size % 2) {
        // A leaf of the tree sends its input as it is.
        if (count) {
            s.send(in, count, type, (comm.rank - 1 + comm.size) % comm.size);
        }
    } else {
        reduce_within(s, own_copy(s, in, count, type), count, type, op, root);
    }
}

void allreduce(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op) {
    if (checking::on) checking::describe_reduction(s, count, type, op);
    Communicator& comm = s.comm();
    if (!comm.inter) {
        const NodeReduction here = node_reduction(comm, count, type, op, kMostNodeBytes);
        if (NodeColl* const node = here.loop != nullptr ? node_of(s) : nullptr) {
            if (in != MPI_IN_PLACE) std::memcpy(out, in, size_t(count) * here.item);
            s.note(node_allreduce(*node, out, count, here));
            return;
        }
        if (in != MPI_IN_PLACE) {
            s.copy(in, count, type, out, count, type);
        }
        allreduce_within(s, out, count, type, op);
        return;
    }
    char* mine = own_copy(s, in, count, type);
    s.through(*comm.within);
    reduce_within(s, mine, count, type, op, 0);
    exchange_first(s, mine, out, count, type);
    bcast_within(s, {out, count, &type}, 0);
}

namespace {

// Each rank sends each part to the process it belongs to, which reduces them as they come.
void reduce_scatter_pairwise(Schedule& s, const char* in, char* out, const Numbers& counts,
                             std::span<const MPI_Aint> begins, const Datatype& type, Operator& op) {
    const int size = s.size();
    const int rank = s.rank();
    const MPI_Count mine = counts[size_t(rank)];
    char* other = s.items(mine, type);
    char* sum = own_copy(s, in + begins[size_t(rank)] * type.extent(), mine, type);
    for (int i = 1; i < size; ++i) {
        int to = (rank + i) % size;
        int from = (rank - i + size) % size;
        s.send(in + begins[size_t(to)] * type.extent(), counts[size_t(to)], type, to);
        s.recv(other, mine, type, from);
        s.round();
        s.reduce(other, sum, mine, type, op);
    }
    s.copy(sum, mine, type, out, mine, type);
}

void reduce_then_scatter(Schedule& s, const void* in, void* out, const Numbers& counts,
                         std::span<const MPI_Aint> begins, MPI_Count total, const Datatype& type, Operator& op) {
    char* all = own_copy(s, in, total, type);
    reduce_within(s, all, total, type, op, 0);
    const int rank = s.rank();
    if (rank == 0) {
        for (int r = 1; r < s.size(); ++r) {
            s.send(all + begins[size_t(r)] * type.extent(), counts[size_t(r)], type, r);
        }
        s.copy(all, counts[0], type, out, counts[0], type);
    } else {
        s.recv(out, counts[size_t(rank)], type, 0);
    }
}

}  // namespace

void reduce_scatter(Schedule& s, const void* in, void* out, const Numbers& counts, const Datatype& type,
                    Operator& op) {
    if (checking::on) checking::describe_reduce_scatter(s, counts, type, op);
    Communicator& comm = s.comm();
    std::vector<MPI_Aint> begins;
    MPI_Count total = 0;
    for (size_t r = 0; r < counts.size(); ++r) {
        begins.push_back(total);
        total += counts[r];
    }
    if (comm.inter) {
        // Each side's sum goes to the other side, whose members share it out by their counts.
        char* all = own_copy(s, in, total, type);
        char* theirs = s.items(total, type);
        s.through(*comm.within);
        reduce_within(s, all, total, type, op, 0);
        exchange_first(s, all, theirs, total, type);
        if (comm.rank == 0) {
            for (int r = 1; r < comm.size; ++r) {
                s.send(theirs + begins[size_t(r)] * type.extent(), counts[size_t(r)], type, r);
            }
            s.copy(theirs, counts[0], type, out, counts[0], type);
        } else {
            s.recv(out, counts[size_t(comm.rank)], type, 0);
        }
        return;
    }
    const void* from = input(in, out);
    if (op.commutative && size_t(total * type.size) >= kHalvingBytes) {
        reduce_scatter_pairwise(s, static_cast<const char*>(from), static_cast<char*>(out), counts, begins, type, op);
    } else {
        reduce_then_scatter(s, from, out, counts, begins, total, type, op);
    }
}

// After round k a process has the reduction over the 2^(k+1) ranks up to itself; what comes from lower ranks goes
// before the prefix as well.
void scan(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op, bool exclusive) {
    if (checking::on) checking::describe_reduction(s, count, type, op);
    const int rank = s.rank();
    const int size = s.size();
    char* known = own_copy(s, input(in, out), count, type);  // of the ranks around, up to this one
    char* other = s.items(count, type);
    bool empty = exclusive;  // whether `out` holds nothing yet
    if (!exclusive && in != MPI_IN_PLACE) {
        s.copy(in, count, type, out, count, type);
    }
    for (int mask = 1; mask < size; mask *= 2) {
        if (rank + mask < size) {
            s.send(known, count, type, rank + mask);
        }
        if (rank - mask >= 0) {
            s.recv(other, count, type, rank - mask);
        }
        s.round();
        if (rank - mask >= 0) {
            if (empty) {
                s.copy(other, count, type, out, count, type);
                empty = false;
            } else {
                s.reduce(other, out, count, type, op);
            }
            s.reduce(other, known, count, type, op);
        }
    }
}

}  // namespace viaduct::mpi::coll
