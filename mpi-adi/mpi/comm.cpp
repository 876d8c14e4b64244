// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that ask communicators.
#include "mpi-adi/engine/communicator.hpp"

#include <algorithm>

#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/name.hpp"

namespace viaduct::mpi {
namespace {

// Of two groups: the same, a permutation, or neither.
int likeness(const Group& a, const Group& b) {
    if (a.world == b.world) {
        return MPI_CONGRUENT;
    }
    std::vector<int> x = a.world, y = b.world;
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    return x == y ? MPI_SIMILAR : MPI_UNEQUAL;
}

int compare(const Communicator& a, const Communicator& b) {
    if (&a == &b) {
        return MPI_IDENT;
    }
    if (a.inter != b.inter) {
        return MPI_UNEQUAL;
    }
    int local = likeness(*a.local, *b.local);
    // MPI_CONGRUENT < MPI_SIMILAR < MPI_UNEQUAL: the worse half decides.
    return a.inter ? std::max(local, likeness(*a.remote, *b.remote)) : local;
}

MPI_Group published(Group* group) {
    group_retain(group);
    return group_publish(group);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

#define VIADUCT_MPI_ASK_COMM(function, parameters, body) \
    VIADUCT_MPI(function, parameters) {                  \
        Communicator* found = comm_of(comm);             \
        Call call("MPI_" #function, found);              \
        if (!found) {                                    \
            return call.result(MPI_ERR_COMM);            \
        }                                                \
        body;                                            \
        return MPI_SUCCESS;                              \
    } VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI_ASK_COMM(Comm_rank, (MPI_Comm comm, int* rank), {
    VIADUCT_MPI_NEED(rank)
    *rank = found->rank;
})
VIADUCT_MPI_ASK_COMM(Comm_size, (MPI_Comm comm, int* size), {
    VIADUCT_MPI_NEED(size)
    *size = found->size;
})
VIADUCT_MPI_ASK_COMM(Comm_test_inter, (MPI_Comm comm, int* flag), {
    VIADUCT_MPI_NEED(flag)
    *flag = found->inter;
})
VIADUCT_MPI_ASK_COMM(Comm_group, (MPI_Comm comm, MPI_Group* group), {
    VIADUCT_MPI_NEED(group)
    *group = published(found->local);
})
VIADUCT_MPI_ASK_COMM(Comm_get_name, (MPI_Comm comm, char* name, int* resultlen), {
    VIADUCT_MPI_NEED(name, resultlen)
    give_name(found->name, name, resultlen);
})
VIADUCT_MPI_ASK_COMM(Comm_set_name, (MPI_Comm comm, const char* name), {
    VIADUCT_MPI_NEED(name)
    found->name = take_name(name);
})

VIADUCT_MPI_ASK_COMM(Comm_remote_size, (MPI_Comm comm, int* size), {
    VIADUCT_MPI_NEED(size)
    if (!found->inter) {
        return call.result(MPI_ERR_COMM);
    }
    *size = found->remote_size;
})

VIADUCT_MPI_ASK_COMM(Comm_remote_group, (MPI_Comm comm, MPI_Group* group), {
    VIADUCT_MPI_NEED(group)
    if (!found->inter) {
        return call.result(MPI_ERR_COMM);
    }
    *group = published(found->remote);
})

VIADUCT_MPI_ASK_COMM(Comm_get_info, (MPI_Comm comm, MPI_Info* info), {
    VIADUCT_MPI_NEED(info)
    Info* made = info_create();
    if (found->hints) {
        made->entries = found->hints->entries;
    }
    *info = made->handle;
})

VIADUCT_MPI_ASK_COMM(Comm_set_info, (MPI_Comm comm, MPI_Info info), {
    const Info* given = info_of(info);
    if (!given && info != MPI_INFO_NULL) {
        return call.result(MPI_ERR_INFO);
    }
    if (given) {
        add_hints(*given, found->hints);
        robust::use_hint(*given, *found);
    }
})

VIADUCT_MPI(Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int* result)) {
    Call call("MPI_Comm_compare", comm_of(comm1));
    VIADUCT_MPI_NEED(result)
    Communicator* a = comm_of(comm1);
    Communicator* b = comm_of(comm2);
    if (!a || !b) {
        return call.result(MPI_ERR_COMM);
    }
    *result = compare(*a, *b);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm1)
