// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make and free communicators.
#include <algorithm>
#include <filesystem>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/dynamic/processes.hpp"
#include "mpi-adi/engine/hardware.hpp"
#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

bool holds_all(const Group& all, const Group& some) {
    return std::all_of(some.world.begin(), some.world.end(),
                       [&](int process) { return all.rank_of(process) != MPI_UNDEFINED; });
}

// Takes `made` by reference: it is filled by the call that is the first argument.
int give(int error, Communicator* const& made, MPI_Comm* newcomm) {
    *newcomm = error == MPI_SUCCESS && made ? made->handle : MPI_COMM_NULL;
    return error;
}

int dup(Communicator* comm, MPI_Info info, MPI_Comm* newcomm) {
    Communicator* made = nullptr;
    return comm ? give(comm_dup(*comm, info_of(info), wrong_info(info), &made), made, newcomm) : MPI_ERR_COMM;
}

int idup(Communicator* comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
    if (!comm) {
        return MPI_ERR_COMM;
    }
    if (!name_is_left()) {
        return MPI_ERR_NO_MEM;
    }
    Request* pending = nullptr;
    if (int error = comm_idup(*comm, info_of(info), wrong_info(info), newcomm, &pending)) {
        return error;
    }
    return publish(pending, request);
}

// MPICH's own type of split: processes that share a directory. All that request it must name the same one; those of
// a node that has it are taken to share it. Other neighbourhoods are not known. `comm` holds those that request it
// and no others.
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
        *color = int(own_node());
    }
    return MPI_SUCCESS;
}

// The members that pass MPI_UNDEFINED do not have the arguments of the others, and take part in one split and no
// more. So that is what separates the others, before they agree among themselves on their colors.
template <typename ColorOf>
int split_those_who_ask(Communicator& comm, int key, int refused, ColorOf&& color_of, Communicator** made) {
    if (comm.inter) {
        return MPI_ERR_COMM;
    }
    Communicator* asking = nullptr;
    if (int error = comm_split(comm, 0, comm.rank, refused, &asking)) {
        return error;
    }
    int color = MPI_UNDEFINED;
    int error = color_of(*asking, &color);
    if (error == MPI_SUCCESS) {
        error = comm_split(*asking, color, key, MPI_SUCCESS, made);
    }
    (void)comm_free(asking);  // no attribute of it can refuse
    return error;
}

constexpr char kResourceKey[] = "mpi_hw_resource_type";

// MPI_UNDEFINED for a resource that has no such name here, and for a process that may run on more than one of them.
int color_by_named_resource(const Info* info) {
    const std::string* name = info ? info->find(kResourceKey) : nullptr;
    const int resource = name ? hardware::resource_named(*name) : -1;
    return resource < 0 ? MPI_UNDEFINED : hardware::color(resource);
}

// The largest resource that the requesting ones share less than all of, and its name for the program.
int color_by_next_resource(Communicator& comm, Info* info, int* color) {
    constexpr int kBoth = 2 * hardware::kResources;
    int colors[hardware::kResources];
    int64_t range[kBoth];  // of each the largest color and, negative, the smallest
    for (int i = 0; i < hardware::kResources; ++i) {
        colors[i] = hardware::color(i);
        range[2 * i] = colors[i];
        range[2 * i + 1] = -int64_t(colors[i]);
    }
    Schedule s(comm);
    coll::allreduce(s, MPI_IN_PLACE, range, kBoth, *type_of(MPI_INT64_T), *op_of(MPI_MAX));
    if (int error = s.run()) {
        return error;
    }
    for (int i = 0; i < hardware::kResources; ++i) {
        if (range[2 * i] != -range[2 * i + 1]) {
            *color = colors[i];
            if (info && *color != MPI_UNDEFINED) {
                info->set(kResourceKey, hardware::kResourceNames[i]);
            }
            return MPI_SUCCESS;
        }
    }
    return MPI_SUCCESS;
}

Communicator* with_hints(Communicator* made, const Info* info) {
    if (made && info) {
        add_hints(*info, made->hints);
        robust::use_hint(*info, *made);
    }
    return made;
}

int split_type(Communicator& comm, int type, int key, MPI_Info handle, MPI_Comm* newcomm) {
    Info* const info = info_of(handle);
    int refused = wrong_info(handle);
    Communicator* made = nullptr;
    int error = MPI_SUCCESS;
    if (type == MPIX_COMM_TYPE_NEIGHBORHOOD) {
        error = split_those_who_ask(
            comm, key, refused,
            [&](Communicator& asking, int* color) { return color_by_directory(asking, info, color); }, &made);
    } else if (type == MPI_COMM_TYPE_HW_UNGUIDED) {
        error = split_those_who_ask(
            comm, key, refused,
            [&](Communicator& asking, int* color) { return color_by_next_resource(asking, info, color); }, &made);
    } else {
        int color = MPI_UNDEFINED;
        if (type == MPI_COMM_TYPE_SHARED) {
            color = int(own_node());
        } else if (type == MPI_COMM_TYPE_HW_GUIDED) {
            color = color_by_named_resource(info);
        } else if (type != MPI_UNDEFINED) {
            refused = MPI_ERR_ARG;
        }
        error = comm_split(comm, color, key, refused, &made);
    }
    return give(error, with_hints(made, info), newcomm);
}

// Waits for what is pending here, and for all members to have come so far; then those that are of another job, and in
// no other communicator, are connected no more.
int disconnect(Communicator& comm, MPI_Comm* handle) {
    // Every pending operation holds a reference.
    progress_until([&comm] { return comm.references == 1; });
    {
        Schedule s(comm);
        coll::barrier(s);
        (void)s.run();  // an error tells of lost members, for which no call waits
    }
    Group* const remote = comm.remote;
    group_retain(remote);
    int error = comm_free(&comm);
    if (error == MPI_SUCCESS) {
        *handle = MPI_COMM_NULL;
        error = part_from_processes(*remote);
    }
    group_release(remote);
    return error;
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
    return call.result(dup(old, MPI_INFO_NULL, newcomm));  // since MPI 4.0 hints stay behind
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_dup_with_info", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(dup(old, info, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_idup", old);
    VIADUCT_MPI_NEED(newcomm, request)
    return call.result(idup(old, MPI_INFO_NULL, newcomm, request));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_idup_with_info", old);
    VIADUCT_MPI_NEED(newcomm, request)
    return call.result(idup(old, info, newcomm, request));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_create", old);
    VIADUCT_MPI_NEED(newcomm)
    Group* members = group_of(group);
    if (!old || !members) {
        return call.result(old ? MPI_ERR_GROUP : MPI_ERR_COMM);
    }
    const int refused = holds_all(*old->local, *members) ? MPI_SUCCESS : MPI_ERR_GROUP;
    Communicator* made = nullptr;
    return call.result(give(comm_create(*old, *members, refused, &made), made, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_create_group", old);
    VIADUCT_MPI_NEED(newcomm)
    Group* members = group_of(group);
    if (!old || !members) {
        return call.result(old ? MPI_ERR_GROUP : MPI_ERR_COMM);
    }
    // Those that name another tag, or other members, than the rest do not meet them.
    if (tag < 0) {
        return call.result(MPI_ERR_TAG);
    }
    if (!holds_all(*old->local, *members)) {
        return call.result(MPI_ERR_GROUP);
    }
    Communicator* made = nullptr;
    return call.result(give(comm_create_group(*old, *members, tag, MPI_SUCCESS, &made), made, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_split", old);
    VIADUCT_MPI_NEED(newcomm)
    if (!old) {
        return call.result(MPI_ERR_COMM);
    }
    const int refused = color < 0 && color != MPI_UNDEFINED ? MPI_ERR_ARG : MPI_SUCCESS;
    Communicator* made = nullptr;
    return call.result(give(comm_split(*old, color, key, refused, &made), made, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_split_type, (MPI_Comm comm, int split_by, int key, MPI_Info info, MPI_Comm* newcomm)) {
    Communicator* old = comm_of(comm);
    Call call("MPI_Comm_split_type", old);
    VIADUCT_MPI_NEED(newcomm)
    return call.result(old ? split_type(*old, split_by, key, info, newcomm) : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_free, (MPI_Comm * comm)) {
    Call call("MPI_Comm_free", comm ? comm_of(*comm) : nullptr);
    VIADUCT_MPI_NEED(comm)
    return call.result(free_comm(comm));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_disconnect, (MPI_Comm * comm)) {
    Communicator* old = comm ? comm_of(*comm) : nullptr;
    Call call("MPI_Comm_disconnect", old);
    VIADUCT_MPI_NEED(comm)
    if (!old || old == world_comm() || old == self_comm()) {
        return call.result(MPI_ERR_COMM);
    }
    return call.result(disconnect(*old, comm));
} VIADUCT_MPI_CATCH()

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
    Communicator* peer = nullptr;
    int refused = MPI_SUCCESS;
    if (local->rank == local_leader) {  // only there peer_comm, remote_leader and tag mean anything
        peer = comm_of(peer_comm);
        if (!peer) {
            refused = MPI_ERR_COMM;
        } else if (remote_leader < 0 || remote_leader >= peer->remote_size ||
                   (!peer->inter && remote_leader == peer->rank)) {
            refused = MPI_ERR_RANK;
        } else if (tag < 0) {
            refused = MPI_ERR_TAG;
        }
        if (refused != MPI_SUCCESS) {
            peer = nullptr;  // the other side cannot be told
        }
    }
    Communicator* made = nullptr;
    return call.result(
        give(intercomm_create(*local, local_leader, peer, remote_leader, tag, refused, &made), made, newintercomm));
} VIADUCT_MPI_CATCH(local_comm)

VIADUCT_MPI(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newcomm)) {
    Communicator* inter = comm_of(intercomm);
    Call call("MPI_Intercomm_merge", inter);
    VIADUCT_MPI_NEED(newcomm)
    if (!inter || !inter->inter) {
        return call.result(MPI_ERR_COMM);
    }
    Communicator* made = nullptr;
    return call.result(give(intercomm_merge(*inter, high != 0, &made), made, newcomm));
} VIADUCT_MPI_CATCH(intercomm)
