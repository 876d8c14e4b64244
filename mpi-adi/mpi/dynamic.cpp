// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that start processes or find others. Launchers give no way to do so that this library uses: every one
// of them says so by its error class, and a process has never a parent.
#include "mpi-adi/mpi/call.hpp"

using namespace viaduct::mpi;

VIADUCT_MPI(Comm_get_parent, (MPI_Comm * parent)) {
    Call call("MPI_Comm_get_parent");
    VIADUCT_MPI_NEED(parent)
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_spawn, (const char*, char*[], int maxprocs, MPI_Info, int root, MPI_Comm comm, MPI_Comm* intercomm,
                         int errcodes[])) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_spawn", members);
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    if (!members) {
        return call.result(MPI_ERR_COMM);
    }
    if (errcodes != MPI_ERRCODES_IGNORE && members->rank == root) {
        for (int i = 0; i < maxprocs; ++i) {
            errcodes[i] = MPI_ERR_SPAWN;
        }
    }
    return call.result(MPI_ERR_SPAWN);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_spawn_multiple, (int count, char*[], char**[], const int maxprocs[], const MPI_Info[], int root,
                                  MPI_Comm comm, MPI_Comm* intercomm, int errcodes[])) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_spawn_multiple", members);
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    if (!members) {
        return call.result(MPI_ERR_COMM);
    }
    if (errcodes != MPI_ERRCODES_IGNORE && members->rank == root) {
        for (int i = 0, at = 0; i < count; ++i) {
            for (int p = 0; p < maxprocs[i]; ++p) {
                errcodes[at++] = MPI_ERR_SPAWN;
            }
        }
    }
    return call.result(MPI_ERR_SPAWN);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Open_port, (MPI_Info, char*)) {
    return Call("MPI_Open_port").result(MPI_ERR_UNSUPPORTED_OPERATION);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Close_port, (const char*)) { return Call("MPI_Close_port").result(MPI_ERR_PORT); } VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_accept, (const char*, MPI_Info, int, MPI_Comm comm, MPI_Comm* newcomm)) {
    Call call("MPI_Comm_accept", comm_of(comm));
    VIADUCT_MPI_NEED(newcomm)
    *newcomm = MPI_COMM_NULL;
    return call.result(comm_of(comm) ? MPI_ERR_PORT : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_connect, (const char*, MPI_Info, int, MPI_Comm comm, MPI_Comm* newcomm)) {
    Call call("MPI_Comm_connect", comm_of(comm));
    VIADUCT_MPI_NEED(newcomm)
    *newcomm = MPI_COMM_NULL;
    return call.result(comm_of(comm) ? MPI_ERR_PORT : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_join, (int, MPI_Comm* intercomm)) {
    Call call("MPI_Comm_join");
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    return call.result(MPI_ERR_UNSUPPORTED_OPERATION);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Publish_name, (const char*, MPI_Info, const char*)) {
    return Call("MPI_Publish_name").result(MPI_ERR_SERVICE);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Unpublish_name, (const char*, MPI_Info, const char*)) {
    return Call("MPI_Unpublish_name").result(MPI_ERR_SERVICE);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Lookup_name, (const char*, MPI_Info, char*)) { return Call("MPI_Lookup_name").result(MPI_ERR_NAME); }
VIADUCT_MPI_CATCH()
