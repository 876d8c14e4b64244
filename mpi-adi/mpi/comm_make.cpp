// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make and free communicators.
#include <filesystem>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

// Takes `made` by reference: it is filled by the call that is the first argument.
int give(int error, Communicator* const& made, MPI_Comm* newcomm) {
    *newcomm = error == MPI_SUCCESS && made ? made->handle : MPI_COMM_NULL;
    return error;
}

int dup(Communicator* comm, const Info* hints, MPI_Comm* newcomm) {
    Communicator* made = nullptr;
    return comm ? give(comm_dup(*comm, hints, &made), made, newcomm) : MPI_ERR_COMM;
}

int idup(Communicator* comm, const Info* hints, MPI_Comm* newcomm, MPI_Request* request) {
    if (!comm) {
        return MPI_ERR_COMM;
    }
    if (!name_is_left()) {
        return MPI_ERR_NO_MEM;
    }
    Request* pending = nullptr;
    if (int error = comm_idup(*comm, hints, newcomm, &pending)) {
        return error;
    }
    *request = publish(pending);
    return MPI_SUCCESS;
}

// MPICH's own type of split: processes that share a directory. All that ask must name the same one; those of a node that
// has it are taken to share it. Other neighbourhoods are not known. `comm` holds those that ask and nobody else.
int color_by_directory(Communicator& comm, const Info* info, int* color) {
    const std::string* directory = info ? info->find("nbhd_common_dirname") : nullptr;
    int64_t range[2] = {-1, 1};  // the largest hash and, negative, the smallest
    if (directory) {
        range[0] = int64_t(std::hash<std::string>{}(*directory) >> 1);
        range[1] = -range[0];
    }
    Schedule s(comm);
    coll::allreduce(s, MPI_IN_PLACE, range, 2, *type_of(MPI_INT64_T), *op_of(MPI_MAX));
    if (int error = s.run()) {
        return error;
    }
    const bool agreed = directory && range[0] == -range[1];
    std::error_code ignored;
    if (agreed && std::filesystem::is_directory(*directory, ignored)) {
        *color = world().nodes[size_t(world().rank)];
    }
    return MPI_SUCCESS;
}

// The members that pass MPI_UNDEFINED do not know what the others ask for, and take part in one split and no more. So
// that is what separates those who ask, before they agree among themselves.
int split_by_directory(Communicator& comm, int key, const Info* info, Communicator** made) {
    if (comm.inter) {
        return MPI_ERR_COMM;
    }
    Communicator* asking = nullptr;
    if (int error = comm_split(comm, 0, comm.rank, &asking)) {
        return error;
    }
    int color = MPI_UNDEFINED;
    int error = color_by_directory(*asking, info, &color);
    if (error == MPI_SUCCESS) {
        error = comm_split(*asking, color, key, made);
    }
    comm_free(asking);
    return error;
}

Communicator* with_hints(Communicator* made, const Info* info) {
    if (made && info) {
        add_hints(*info, made->hints);
    }
    return made;
}

int split_type(Communicator& comm, int type, int key, const Info* info, MPI_Comm* newcomm) {
    Communicator* made = nullptr;
    if (type == MPIX_COMM_TYPE_NEIGHBORHOOD) {
        const int error = split_by_directory(comm, key, info, &made);
        return give(error, with_hints(made, info), newcomm);
    }
    int color = MPI_UNDEFINED;
    if (type == MPI_COMM_TYPE_SHARED) {
        color = world().nodes[size_t(world().rank)];
    } else if (type != MPI_UNDEFINED && type != MPI_COMM_TYPE_HW_GUIDED && type != MPI_COMM_TYPE_HW_UNGUIDED) {
        return MPI_ERR_ARG;  // no finer division of the hardware is known: MPI_COMM_NULL for those asked for one
    }
    const int error = comm_split(comm, color, key, &made);
    return give(error, with_hints(made, info), newcomm);
}

int free_comm(MPI_Comm* handle) {
    Communicator* comm = comm_of(*handle);
    if (!comm || comm == world_comm() || comm == self_comm()) {
        return MPI_ERR_COMM;
    }
    int error = comm_free(comm);
    if (error == MPI_SUCCESS) {
        *handle = MPI_COMM_NULL;
    }
    return error;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Comm_dup, (MPI_Comm comm, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_dup", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(dup(old, nullptr, newcomm));  // since MPI 4.0 hints stay behind
}

VIADUCT_MPI(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_dup_with_info", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(dup(old, info_of(info), newcomm));
}

VIADUCT_MPI(Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_idup", old);
    VIADUCT_MPI_NEED(newcomm, request)
    return call.result(idup(old, nullptr, newcomm, request));
}

VIADUCT_MPI(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_idup_with_info", old);
    VIADUCT_MPI_NEED(newcomm, request)
    return call.result(idup(old, info_of(info), newcomm, request));
}

VIADUCT_MPI(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_create", old);
    VIADUCT_MPI_NEED(newcomm)
    Group* members = group_of(group);
    if (!old || !members) {
        return call.result(old ? MPI_ERR_GROUP : MPI_ERR_COMM);
    }
    for (int process : members->world) {
        if (old->local->rank_of(process) == MPI_UNDEFINED) {
            return call.result(MPI_ERR_GROUP);
        }
    }
    Communicator* made = nullptr;
    return call.result(give(comm_create(*old, *members, &made), made, newcomm));
}

VIADUCT_MPI(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_create_group", old);
    VIADUCT_MPI_NEED(newcomm)
    Group* members = group_of(group);
    if (!old || !members) {
        return call.result(old ? MPI_ERR_GROUP : MPI_ERR_COMM);
    }
    if (tag < 0 || tag > kMaxTag) {
        return call.result(MPI_ERR_TAG);
    }
    Communicator* made = nullptr;
    return call.result(give(comm_create_group(*old, *members, tag, &made), made, newcomm));
}

VIADUCT_MPI(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_split", old);
    VIADUCT_MPI_NEED(newcomm)
    if (!old) {
        return call.result(MPI_ERR_COMM);
    }
    if (color < 0 && color != MPI_UNDEFINED) {
        return call.result(MPI_ERR_ARG);
    }
    Communicator* made = nullptr;
    return call.result(give(comm_split(*old, color, key, &made), made, newcomm));
}

VIADUCT_MPI(Comm_split_type, (MPI_Comm comm, int split_by, int key, MPI_Info info, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_split_type", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(old ? split_type(*old, split_by, key, info_of(info), newcomm) : MPI_ERR_COMM);
}

VIADUCT_MPI(Comm_free, (MPI_Comm * comm)) {
    Call call("MPI_Comm_free", comm ? comm_of(*comm) : nullptr);
    VIADUCT_MPI_NEED(comm)
    return call.result(free_comm(comm));
}

VIADUCT_MPI(Comm_disconnect, (MPI_Comm * comm)) {
    Communicator* old = comm ? comm_of(*comm) : nullptr;
    Call call("MPI_Comm_disconnect", old);
    VIADUCT_MPI_NEED(comm)
    if (old) {  // every pending operation holds a reference
        progress_until([old] { return old->references == 1; });
    }
    return call.result(free_comm(comm));
}

VIADUCT_MPI(Intercomm_create, (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                               MPI_Comm* newintercomm)) {
    Communicator* local = comm_of(local_comm);
    Call call("MPI_Intercomm_create", local);
    VIADUCT_MPI_NEED(newintercomm)
    if (!local || local->inter) {
        return call.result(MPI_ERR_COMM);
    }
    if (local_leader < 0 || local_leader >= local->size) {
        return call.result(MPI_ERR_RANK);
    }
    if (tag < 0 || tag > kMaxTag) {
        return call.result(MPI_ERR_TAG);
    }
    Communicator* peer = nullptr;
    if (local->rank == local_leader) {  // only there peer_comm and remote_leader mean anything
        peer = comm_of(peer_comm);
        if (!peer) {
            return call.result(MPI_ERR_COMM);
        }
        if (remote_leader < 0 || remote_leader >= peer->remote_size || (!peer->inter && remote_leader == peer->rank)) {
            return call.result(MPI_ERR_RANK);
        }
    }
    Communicator* made = nullptr;
    return call.result(give(intercomm_create(*local, local_leader, peer, remote_leader, tag, &made), made, newintercomm));
}

VIADUCT_MPI(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newcomm)) {
    Communicator* inter = comm_of(intercomm);
    Call call("MPI_Intercomm_merge", inter);
    VIADUCT_MPI_NEED(newcomm)
    if (!inter || !inter->inter) {
        return call.result(MPI_ERR_COMM);
    }
    Communicator* made = nullptr;
    return call.result(give(intercomm_merge(*inter, high != 0, &made), made, newcomm));
}
