// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on Cartesian and graph topologies.
#include "mpi-adi/engine/topology.hpp"

#include <algorithm>

#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/mpi/topology.hpp"

namespace viaduct::mpi {
namespace {

// The communicator of the first `n` processes of the old one, with a topology; null for the others.
int first_ones(Communicator& old, int n, int refused, std::unique_ptr<Topology> topology, MPI_Comm* newcomm) {
    Communicator* made = nullptr;
    if (int error = comm_split(old, old.rank < n ? 0 : MPI_UNDEFINED, old.rank, refused, &made)) {
        return error;
    }
    if (made) {
        if (topology->kind == MPI_CART) {
            topology->coords.resize(topology->dims.size());
            topology->coords_of(made->rank, topology->coords);
        }
        topology->list_neighbours(made->rank);
        made->topology = std::move(topology);
    }
    *newcomm = made ? made->handle : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int check_cart(const Communicator& old, int ndims, const int dims[], const int periods[], int64_t* n) {
    if (ndims < 0) {
        return MPI_ERR_DIMS;
    }
    if (ndims > 0 && missing(dims, periods)) {
        return MPI_ERR_ARG;
    }
    *n = 1;
    for (int d = 0; d < ndims; ++d) {
        if (dims[d] < 1) {
            return MPI_ERR_DIMS;
        }
        *n *= dims[d];
        if (*n > old.size) {
            return MPI_ERR_TOPOLOGY;
        }
    }
    return MPI_SUCCESS;
}

int cart_create(Communicator& old, int ndims, const int dims[], const int periods[], MPI_Comm* newcomm) {
    int64_t n = 0;
    auto topology = std::make_unique<Topology>();
    topology->kind = MPI_CART;
    if (const int refused = check_cart(old, ndims, dims, periods, &n)) {
        return first_ones(old, 0, refused, std::move(topology), newcomm);
    }
    topology->dims.assign(dims, dims + ndims);
    for (int d = 0; d < ndims; ++d) {
        topology->periods.push_back(periods[d] != 0);
    }
    return first_ones(old, int(n), MPI_SUCCESS, std::move(topology), newcomm);
}

int check_graph(const Communicator& old, int nnodes, const int index[], const int edges[]) {
    if (nnodes < 0 || nnodes > old.size) {
        return nnodes < 0 ? MPI_ERR_ARG : MPI_ERR_TOPOLOGY;
    }
    if (nnodes > 0 && (!index || (!edges && index[nnodes - 1] > 0))) {
        return MPI_ERR_ARG;
    }
    for (int i = 0; i < nnodes; ++i) {
        if (index[i] < (i ? index[i - 1] : 0)) {
            return MPI_ERR_TOPOLOGY;
        }
    }
    int n = nnodes ? index[nnodes - 1] : 0;
    const bool holds = std::all_of(edges, edges + n, [&](int e) { return e >= 0 && e < nnodes; });
    return holds ? MPI_SUCCESS : MPI_ERR_TOPOLOGY;
}

int graph_create(Communicator& old, int nnodes, const int index[], const int edges[], MPI_Comm* newcomm) {
    auto topology = std::make_unique<Topology>();
    topology->kind = MPI_GRAPH;
    if (const int refused = check_graph(old, nnodes, index, edges)) {
        return first_ones(old, 0, refused, std::move(topology), newcomm);
    }
    const int n = nnodes ? index[nnodes - 1] : 0;
    topology->index.assign(index, index + nnodes);
    topology->edges.assign(edges, edges + n);
    return first_ones(old, nnodes, MPI_SUCCESS, std::move(topology), newcomm);
}

// Processes that keep all coordinates of dropped dimensions in common are together; their order is that of the kept
// ones.
int cart_sub(Communicator& old, const int remain[], MPI_Comm* newcomm) {
    const Topology& from = *old.topology;
    auto topology = std::make_unique<Topology>();
    topology->kind = MPI_CART;
    int color = 0, key = 0;
    for (size_t d = 0; d < from.dims.size(); ++d) {
        if (remain[d]) {
            topology->dims.push_back(from.dims[d]);
            topology->periods.push_back(from.periods[d]);
            topology->coords.push_back(from.coords[d]);
            key = key * from.dims[d] + from.coords[d];
        } else {
            color = color * from.dims[d] + from.coords[d];
        }
    }
    // A grid without dimensions is one process: the first one has it, as after MPI_Cart_create of none.
    if (topology->dims.empty() && old.rank != 0) {
        color = MPI_UNDEFINED;
    }
    Communicator* made = nullptr;
    if (int error = comm_split(old, color, key, MPI_SUCCESS, &made)) {
        return error;
    }
    if (!made) {
        *newcomm = MPI_COMM_NULL;
        return MPI_SUCCESS;
    }
    topology->list_neighbours(made->rank);
    made->topology = std::move(topology);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Dims_create, (int nnodes, int ndims, int dims[])) {
    Call call("MPI_Dims_create");
    if (ndims < 0) {
        return call.result(MPI_ERR_DIMS);
    }
    if (ndims > 0) {
        VIADUCT_MPI_NEED(dims)
    }
    return call.result(ndims == 0 ? MPI_SUCCESS : dims_create(nnodes, {dims, size_t(ndims)}));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Topo_test, (MPI_Comm comm, int* status)) {
    Communicator* found = comm_of(comm);
    Call call("MPI_Topo_test", found);
    VIADUCT_MPI_NEED(status)
    if (!found) {
        return call.result(MPI_ERR_COMM);
    }
    *status = found->topology ? found->topology->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Cart_create,
            (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int, MPI_Comm* comm_cart)) {
    Communicator* old = comm_of(comm_old);
    Call call("MPI_Cart_create", old);
    VIADUCT_MPI_NEED(comm_cart)
    *comm_cart = MPI_COMM_NULL;
    return call.result(old && !old->inter ? cart_create(*old, ndims, dims, periods, comm_cart) : MPI_ERR_COMM);
}
VIADUCT_MPI_CATCH(comm_old)

VIADUCT_MPI_ASK_TOPOLOGY(Cartdim_get, MPI_CART, (MPI_Comm comm, int* ndims), {
    VIADUCT_MPI_NEED(ndims)
    *ndims = int(topology.dims.size());
})

VIADUCT_MPI_ASK_TOPOLOGY(Cart_get, MPI_CART, (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]), {
    size_t n = std::min(size_t(std::max(maxdims, 0)), topology.dims.size());
    if (n > 0) {
        VIADUCT_MPI_NEED(dims, periods, coords)
    }
    std::copy_n(topology.dims.begin(), n, dims);
    std::copy_n(topology.periods.begin(), n, periods);
    std::copy_n(topology.coords.begin(), n, coords);
})

VIADUCT_MPI_ASK_TOPOLOGY(Cart_rank, MPI_CART, (MPI_Comm comm, const int coords[], int* rank), {
    VIADUCT_MPI_NEED(rank)
    if (!topology.dims.empty()) {
        VIADUCT_MPI_NEED(coords)
    }
    int at = topology.rank_at({coords, topology.dims.size()});
    if (at == MPI_PROC_NULL) {
        return call.result(MPI_ERR_ARG);
    }
    *rank = at;
})

VIADUCT_MPI_ASK_TOPOLOGY(Cart_coords, MPI_CART, (MPI_Comm comm, int rank, int maxdims, int coords[]), {
    if (rank < 0 || rank >= found->size) {
        return call.result(MPI_ERR_RANK);
    }
    if (maxdims < int(topology.dims.size())) {
        return call.result(MPI_ERR_ARG);
    }
    if (!topology.dims.empty()) {
        VIADUCT_MPI_NEED(coords)
    }
    topology.coords_of(rank, {coords, topology.dims.size()});
})

VIADUCT_MPI_ASK_TOPOLOGY(Cart_shift, MPI_CART,
                         (MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest), {
                             VIADUCT_MPI_NEED(rank_source, rank_dest)
                             if (direction < 0 || direction >= int(topology.dims.size())) {
                                 return call.result(topology.dims.empty() ? MPI_ERR_DIMS : MPI_ERR_ARG);
                             }
                             *rank_source = topology.shifted(topology.coords, direction, -disp);
                             *rank_dest = topology.shifted(topology.coords, direction, disp);
                         })

VIADUCT_MPI_ASK_TOPOLOGY(Cart_sub, MPI_CART, (MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm),
                         {
                             VIADUCT_MPI_NEED(newcomm)
                             if (!topology.dims.empty()) {
                                 VIADUCT_MPI_NEED(remain_dims)
                             }
                             return call.result(cart_sub(*found, remain_dims, newcomm));
                         })

VIADUCT_MPI(Cart_map, (MPI_Comm comm, int ndims, const int dims[], const int[], int* newrank)) {
    Communicator* found = comm_of(comm);
    Call call("MPI_Cart_map", found);
    VIADUCT_MPI_NEED(newrank)
    if (!found) {
        return call.result(MPI_ERR_COMM);
    }
    if (ndims > 0) {
        VIADUCT_MPI_NEED(dims)
    }
    int64_t n = 1;
    for (int d = 0; d < ndims; ++d) {
        n *= dims[d];
    }
    if (ndims < 0 || n < 1 || n > found->size) {
        return call.result(MPI_ERR_DIMS);
    }
    *newrank = found->rank < n ? found->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Graph_create, (MPI_Comm comm_old, int nnodes, const int index[], const int edges[], int,
                           MPI_Comm* comm_graph)) {
    Communicator* old = comm_of(comm_old);
    Call call("MPI_Graph_create", old);
    VIADUCT_MPI_NEED(comm_graph)
    *comm_graph = MPI_COMM_NULL;
    return call.result(old && !old->inter ? graph_create(*old, nnodes, index, edges, comm_graph) : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm_old)

VIADUCT_MPI_ASK_TOPOLOGY(Graphdims_get, MPI_GRAPH, (MPI_Comm comm, int* nnodes, int* nedges), {
    VIADUCT_MPI_NEED(nnodes, nedges)
    *nnodes = int(topology.index.size());
    *nedges = int(topology.edges.size());
})

VIADUCT_MPI_ASK_TOPOLOGY(Graph_get, MPI_GRAPH, (MPI_Comm comm, int maxindex, int maxedges, int index[], int edges[]), {
    if ((maxindex > 0 && !index) || (maxedges > 0 && !edges)) {
        return call.result(MPI_ERR_ARG);
    }
    std::copy_n(topology.index.begin(), std::min(size_t(std::max(maxindex, 0)), topology.index.size()), index);
    std::copy_n(topology.edges.begin(), std::min(size_t(std::max(maxedges, 0)), topology.edges.size()), edges);
})

VIADUCT_MPI_ASK_TOPOLOGY(Graph_neighbors_count, MPI_GRAPH, (MPI_Comm comm, int rank, int* nneighbors), {
    VIADUCT_MPI_NEED(nneighbors)
    if (rank < 0 || rank >= found->size) {
        return call.result(MPI_ERR_RANK);
    }
    *nneighbors = topology.index[size_t(rank)] - (rank ? topology.index[size_t(rank) - 1] : 0);
})

VIADUCT_MPI_ASK_TOPOLOGY(Graph_neighbors, MPI_GRAPH, (MPI_Comm comm, int rank, int maxneighbors, int neighbors[]), {
    if (rank < 0 || rank >= found->size) {
        return call.result(MPI_ERR_RANK);
    }
    int first = rank ? topology.index[size_t(rank) - 1] : 0;
    int n = std::min(maxneighbors, topology.index[size_t(rank)] - first);
    if (n > 0) {
        VIADUCT_MPI_NEED(neighbors)
    }
    std::copy_n(topology.edges.begin() + first, n, neighbors);
})

VIADUCT_MPI(Graph_map, (MPI_Comm comm, int nnodes, const int[], const int[], int* newrank)) {
    Communicator* found = comm_of(comm);
    Call call("MPI_Graph_map", found);
    VIADUCT_MPI_NEED(newrank)
    if (!found) {
        return call.result(MPI_ERR_COMM);
    }
    if (nnodes < 1 || nnodes > found->size) {
        return call.result(MPI_ERR_ARG);
    }
    *newrank = found->rank < nnodes ? found->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)
