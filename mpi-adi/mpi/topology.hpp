// SPDX-License-Identifier: BSD-2-Clause
// What the MPI functions on topologies share.
#pragma once

#include "mpi-adi/mpi/call.hpp"

// A function that asks the topology of a kind: `body` uses `found` and `topology`.
#define VIADUCT_MPI_ASK_TOPOLOGY(function, wanted, parameters, ...)              \
    VIADUCT_MPI(function, parameters) {                                          \
        Communicator* found = comm_of(comm);                                     \
        Call call("MPI_" #function, found);                                      \
        if (!found || !found->topology || found->topology->kind != (wanted)) {   \
            return call.result(found ? MPI_ERR_TOPOLOGY : MPI_ERR_COMM);         \
        }                                                                        \
        [[maybe_unused]] const Topology& topology = *found->topology;            \
        __VA_ARGS__                                                              \
        return MPI_SUCCESS;                                                      \
    } VIADUCT_MPI_CATCH(comm)
