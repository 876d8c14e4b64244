// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on distributed graphs, where each process tells some of the edges.
#include <algorithm>
#include <memory>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/mpi/topology.hpp"

namespace viaduct::mpi {
namespace {

struct Edge {
    int source, destination, weight;
};

bool weightless(const int* weights) { return weights == MPI_UNWEIGHTED; }

int weight_at(const int* weights, int i) {
    return weightless(weights) || weights == MPI_WEIGHTS_EMPTY ? 1 : weights[i];
}

bool ranks_hold(const Communicator& comm, const int* ranks, int n) {
    return std::all_of(ranks, ranks + n, [&](int r) { return r >= 0 && r < comm.size; });
}

int finish(Communicator& old, int refused, std::unique_ptr<Topology> topology, MPI_Comm* newcomm) {
    Communicator* made = nullptr;
    // Not a duplicate: attributes stay behind.
    if (int error = comm_split(old, 0, old.rank, refused, &made)) {
        return error;
    }
    made->topology = std::move(topology);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

// The edges of all processes at each, in the order of ranks: graphs are made seldom, and their size is the
// program's. None of one that refuses the call, which the others are told in the end.
int share_edges(Communicator& comm, const std::vector<Edge>& mine, std::vector<Edge>* all) {
    const Datatype& type = *type_of(MPI_INT);
    int n = int(mine.size() * 3);
    std::vector<int> counts(size_t(comm.size)), begins(size_t(comm.size));
    {
        Schedule s(comm);
        coll::allgather(s, {&n, 1, &type}, {counts.data(), {}, {}, 1, &type});
        if (int error = s.run()) {
            return error;
        }
    }
    int total = 0;
    for (size_t r = 0; r < counts.size(); ++r) {
        begins[r] = total;
        total += counts[r];
    }
    all->resize(size_t(total) / 3);
    Schedule s(comm);
    coll::allgather(s, {mine.data(), n, &type},
                    {all->data(), {counts.data(), counts.size()}, {begins.data(), begins.size()}, 0, &type, true});
    return s.run();
}

int list_edges(const Communicator& old, int n, const int sources[], const int degrees[], const int destinations[],
               const int weights[], std::vector<Edge>* mine) {
    if (n < 0 || (n > 0 && missing(sources, degrees))) {
        return MPI_ERR_ARG;
    }
    int at = 0;
    for (int i = 0; i < n; ++i) {
        if (sources[i] < 0 || sources[i] >= old.size || degrees[i] < 0 ||
            (degrees[i] > 0 && missing(destinations, weights)) || !ranks_hold(old, destinations + at, degrees[i])) {
            return MPI_ERR_ARG;
        }
        for (int d = 0; d < degrees[i]; ++d, ++at) {
            mine->push_back({sources[i], destinations[at], weight_at(weights, at)});
        }
    }
    return MPI_SUCCESS;
}

int create(Communicator& old, int n, const int sources[], const int degrees[], const int destinations[],
           const int weights[], MPI_Info info, MPI_Comm* newcomm) {
    std::vector<Edge> mine, all;
    int refused = list_edges(old, n, sources, degrees, destinations, weights, &mine);
    if (refused == MPI_SUCCESS && !is_info_or_none(info)) {
        refused = MPI_ERR_INFO;
    }
    if (refused != MPI_SUCCESS) {
        mine.clear();
    }
    if (int error = share_edges(old, mine, &all)) {
        return error;
    }
    auto topology = std::make_unique<Topology>();
    topology->kind = MPI_DIST_GRAPH;
    topology->weighted = !weightless(weights);
    for (const Edge& edge : all) {
        if (edge.destination == old.rank) {
            topology->sources.push_back(edge.source);
            topology->source_weights.push_back(edge.weight);
        }
        if (edge.source == old.rank) {
            topology->destinations.push_back(edge.destination);
            topology->destination_weights.push_back(edge.weight);
        }
    }
    return finish(old, refused, std::move(topology), newcomm);
}

int check_adjacent(const Communicator& old, int indegree, const int sources[], const int source_weights[],
                   int outdegree, const int destinations[], const int destination_weights[], MPI_Info info) {
    if ((indegree > 0 && missing(sources, source_weights)) ||
        (outdegree > 0 && missing(destinations, destination_weights))) {
        return MPI_ERR_ARG;
    }
    if (indegree < 0 || outdegree < 0 || !ranks_hold(old, sources, indegree) ||
        !ranks_hold(old, destinations, outdegree) || weightless(source_weights) != weightless(destination_weights)) {
        return MPI_ERR_ARG;
    }
    return is_info_or_none(info) ? MPI_SUCCESS : MPI_ERR_INFO;
}

int create_adjacent(Communicator& old, int indegree, const int sources[], const int source_weights[], int outdegree,
                    const int destinations[], const int destination_weights[], MPI_Info info, MPI_Comm* newcomm) {
    auto topology = std::make_unique<Topology>();
    topology->kind = MPI_DIST_GRAPH;
    if (const int refused = check_adjacent(old, indegree, sources, source_weights, outdegree, destinations,
                                           destination_weights, info)) {
        return finish(old, refused, std::move(topology), newcomm);
    }
    topology->weighted = !weightless(source_weights);
    for (int i = 0; i < indegree; ++i) {
        topology->sources.push_back(sources[i]);
        topology->source_weights.push_back(weight_at(source_weights, i));
    }
    for (int i = 0; i < outdegree; ++i) {
        topology->destinations.push_back(destinations[i]);
        topology->destination_weights.push_back(weight_at(destination_weights, i));
    }
    return finish(old, MPI_SUCCESS, std::move(topology), newcomm);
}

void give(const std::vector<int>& from, int most, int to[]) {
    std::copy_n(from.begin(), std::min(size_t(std::max(most, 0)), from.size()), to);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Dist_graph_create, (MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                                const int destinations[], const int weights[], MPI_Info info, int,
                                MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm_old);
    Call call("MPI_Dist_graph_create", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(old && !old->inter ? create(*old, n, sources, degrees, destinations, weights, info, newcomm)
                                          : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm_old)

VIADUCT_MPI(Dist_graph_create_adjacent,
            (MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree,
             const int destinations[], const int destweights[], MPI_Info info, int, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm_old);
    Call call("MPI_Dist_graph_create_adjacent", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(old && !old->inter ? create_adjacent(*old, indegree, sources, sourceweights, outdegree,
                                                            destinations, destweights, info, newcomm)
                                          : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm_old)

VIADUCT_MPI_ASK_TOPOLOGY(Dist_graph_neighbors_count, MPI_DIST_GRAPH,
                         (MPI_Comm comm, int* indegree, int* outdegree, int* weighted), {
                             VIADUCT_MPI_NEED(indegree, outdegree, weighted)
                             *indegree = int(topology.sources.size());
                             *outdegree = int(topology.destinations.size());
                             *weighted = topology.weighted;
                         })

VIADUCT_MPI_ASK_TOPOLOGY(Dist_graph_neighbors, MPI_DIST_GRAPH,
                         (MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                          int destinations[], int destweights[]),
                         {
                             const bool in = std::min(maxindegree, int(topology.sources.size())) > 0;
                             const bool out = std::min(maxoutdegree, int(topology.destinations.size())) > 0;
                             if ((in && !sources) || (out && !destinations) ||
                                 (topology.weighted && ((in && !sourceweights) || (out && !destweights)))) {
                                 return call.result(MPI_ERR_ARG);
                             }
                             give(topology.sources, maxindegree, sources);
                             give(topology.destinations, maxoutdegree, destinations);
                             if (topology.weighted && sourceweights != MPI_UNWEIGHTED) {
                                 give(topology.source_weights, maxindegree, sourceweights);
                             }
                             if (topology.weighted && destweights != MPI_UNWEIGHTED) {
                                 give(topology.destination_weights, maxoutdegree, destweights);
                             }
                         })
