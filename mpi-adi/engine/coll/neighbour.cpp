// SPDX-License-Identifier: BSD-2-Clause
// Collective operations with the neighbours of a topology. The i-th share goes to the i-th destination and comes from
// the i-th source; neighbours that do not exist (MPI_PROC_NULL) are left out, and so are their shares.
#include "mpi-adi/engine/coll/coll.hpp"

namespace viaduct::mpi::coll {
namespace {

// In a periodic grid of one or two processes a neighbour is met twice: on both sides of a dimension. Messages of one
// pair match in order, so what goes down must be received as what comes from above: sends go in the order in which the
// other side lists its sources.
template <typename Send, typename Recv>
void exchange(Schedule& s, Send&& send, Recv&& recv) {
    const Topology& topology = *s.comm().topology;
    const auto& sources = topology.sources;
    const auto& destinations = topology.destinations;
    for (size_t i = 0; i < sources.size(); ++i) {
        recv(int(i), sources[i]);
    }
    if (topology.kind == MPI_CART) {
        for (size_t i = 0; i < destinations.size(); i += 2) {
            send(int(i) + 1, destinations[i + 1]);
            send(int(i), destinations[i]);
        }
    } else {
        for (size_t i = 0; i < destinations.size(); ++i) {
            send(int(i), destinations[i]);
        }
    }
}

}  // namespace

void neighbour_allgather(Schedule& s, Items in, Shares out) {
    exchange(
        s, [&](int, int to) { s.send(in.base, in.count, *in.type, to); },
        [&](int i, int from) { s.recv(out.at(i), out.count_of(i), *out.type, from); });
}

void neighbour_alltoall(Schedule& s, Shares in, Shares out) {
    exchange(
        s, [&](int i, int to) { s.send(in.at(i), in.count_of(i), *in.type, to); },
        [&](int i, int from) { s.recv(out.at(i), out.count_of(i), *out.type, from); });
}

void neighbour_alltoallw(Schedule& s, TypedShares in, TypedShares out) {
    exchange(
        s, [&](int i, int to) { s.send(in.at(i), in.counts[size_t(i)], *in.types[size_t(i)], to); },
        [&](int i, int from) { s.recv(out.at(i), out.counts[size_t(i)], *out.types[size_t(i)], from); });
}

}  // namespace viaduct::mpi::coll
