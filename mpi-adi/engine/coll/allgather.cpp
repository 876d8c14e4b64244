// SPDX-License-Identifier: BSD-2-Clause
// Each process' share to all: by doubling what each has while that is little, round a ring when it is much.
#include <algorithm>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/node_coll.hpp"

namespace viaduct::mpi::coll {
namespace {

constexpr MPI_Count kDoublingBytes = 64 << 10;  // all shares together

// Bruck's way: in round k each process has 2^k shares, its own first, and passes them 2^k down. For any number of
// processes, one copy at the end to put the shares in their places.
void doubling(Schedule& s, Shares out) {
    const Datatype& byte = *type_of(MPI_BYTE);
    const int size = s.size();
    const int rank = s.rank();
    const MPI_Count share = out.count * out.type->size;
    char* known = s.bytes(size_t(share) * size_t(size));
    s.copy(out.at(rank), out.count, *out.type, known, share, byte);
    for (int have = 1; have < size; have *= 2) {
        MPI_Count n = std::min(have, size - have) * share;
        s.send(known, n, byte, (rank - have + size) % size);
        s.recv(known + have * share, n, byte, (rank + have) % size);
        s.round();
    }
    for (int i = 1; i < size; ++i) {
        int r = (rank + i) % size;
        s.copy(known + i * share, share, byte, out.at(r), out.count, *out.type);
    }
}

void ring(Schedule& s, Shares out) {
    const int size = s.size();
    const int rank = s.rank();
    for (int i = 0; i + 1 < size; ++i) {
        int mine = (rank - i + size) % size;
        int theirs = (mine - 1 + size) % size;
        s.send(out.at(mine), out.count_of(mine), *out.type, (rank + 1) % size);
        s.recv(out.at(theirs), out.count_of(theirs), *out.type, (rank - 1 + size) % size);
        s.round();
    }
}

void allgather_within(Schedule& s, Items in, Shares out) {
    if (!in.in_place()) {
        int rank = s.rank();
        s.copy(in.base, in.count, *in.type, out.at(rank), out.count_of(rank), *out.type);
    }
    if (s.size() == 1) {
        return;
    }
    if (!out.varying && out.count * out.type->size * s.size() <= kDoublingBytes) {
        doubling(s, out);
    } else {
        ring(s, out);
    }
}

// The first ones of both sides exchange what they gathered from their own, and hand out what they got.
void allgather_across(Schedule& s, Items in, Shares out) {
    Communicator& comm = s.comm();
    Communicator& within = *comm.within;
    // The shares of one side may differ from each other and only the other side has them: the first one takes each
    // share as it comes and passes it on under the counts of the receivers.
    if (comm.rank == 0) {
        for (int r = 0; r < comm.remote_size; ++r) {
            s.recv(out.at(r), out.count_of(r), *out.type, r);
        }
    }
    s.send(in.base, in.count, *in.type, 0);
    s.round();
    s.through(within);
    for (int r = 0; r < comm.remote_size; ++r) {
        bcast_within(s, {out.at(r), out.count_of(r), out.type}, 0);
    }
}

}  // namespace

void allgather(Schedule& s, Items in, Shares out) {
    if (checking::on) checking::describe_allgather(s, in, out);
    if (s.comm().inter) {
        allgather_across(s, in, out);
        return;
    }
    const size_t most = is_crowd(s.comm()) ? NodeSegment::large(s.size()) : NodeSegment::kSmall;
    const bool fits = !out.varying && out.count * out.type->size <= MPI_Count(most);
    if (NodeColl* const node = fits ? node_of(s) : nullptr)
        s.note(node_allgather(*node, in, out));
    else
        allgather_within(s, in, out);
}

}  // namespace viaduct::mpi::coll
