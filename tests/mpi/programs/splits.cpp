// SPDX-License-Identifier: BSD-2-Clause
// MPI_Comm_split_type, of each type, when all members ask and when some pass MPI_UNDEFINED. All run on one host.
#include <sched.h>

#include <string>

#include "check.hpp"

namespace {

int rank, size;

// Number of members of what comes out for this process, 0 for MPI_COMM_NULL; frees it.
int members_of(int type, int key, MPI_Info info) {
    MPI_Comm made;
    EXPECT(MPI_Comm_split_type(MPI_COMM_WORLD, type, key, info, &made) == MPI_SUCCESS);
    if (made == MPI_COMM_NULL) {
        return 0;
    }
    int members = 0, place = -1, sum = 0;
    MPI_Comm_size(made, &members);
    MPI_Comm_rank(made, &place);
    MPI_Allreduce(&place, &sum, 1, MPI_INT, MPI_SUM, made);
    EXPECT(sum == members * (members - 1) / 2);
    MPI_Comm_free(&made);
    return members;
}

// `odd_too`: whether processes of odd rank ask as well.
void all_types(bool odd_too) {
    const bool asks = odd_too || rank % 2 == 0;
    const int askers = odd_too ? size : (size + 1) / 2;
    auto asked = [&](int type) { return asks ? type : MPI_UNDEFINED; };
    EXPECT(members_of(asked(MPI_COMM_TYPE_SHARED), 0, MPI_INFO_NULL) == (asks ? askers : 0));
    EXPECT(members_of(asked(MPIX_COMM_TYPE_NEIGHBORHOOD), 0, MPI_INFO_NULL) == 0);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbhd_common_dirname", "/tmp");
    EXPECT(members_of(asked(MPIX_COMM_TYPE_NEIGHBORHOOD), 0, info) == (asks ? askers : 0));
    MPI_Info_set(info, "nbhd_common_dirname", "/no such directory");
    EXPECT(members_of(asked(MPIX_COMM_TYPE_NEIGHBORHOOD), 0, info) == 0);
    // They have to agree on it.
    MPI_Info_set(info, "nbhd_common_dirname", rank == 0 ? "/" : "/tmp");
    EXPECT(members_of(asked(MPIX_COMM_TYPE_NEIGHBORHOOD), 0, info) == (asks && askers == 1 ? 1 : 0));
    MPI_Info_free(&info);
}

// The resource is named by an info object; a rank that may use two of a kind belongs to none.
void by_hardware() {
    MPI_Info info;
    MPI_Info_create(&info);
    EXPECT(members_of(MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL) == 0);
    EXPECT(members_of(MPI_COMM_TYPE_HW_GUIDED, 0, info) == 0);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    EXPECT(members_of(MPI_COMM_TYPE_HW_GUIDED, 0, info) == size);
    MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
    EXPECT(members_of(MPI_COMM_TYPE_HW_GUIDED, 0, info) == 0);
    cpu_set_t before, one;
    ::sched_getaffinity(0, sizeof before, &before);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    for (const char* resource : {"PU", "Core"}) {
        MPI_Info_set(info, "mpi_hw_resource_type", resource);
        EXPECT(members_of(MPI_COMM_TYPE_HW_GUIDED, 0, info) == size);
    }
    // All share all there is: nothing divides them.
    EXPECT(members_of(MPI_COMM_TYPE_HW_UNGUIDED, 0, info) == 0);
    int second = first + 1;
    while (second < CPU_SETSIZE && !CPU_ISSET(second, &before)) ++second;
    if (second < CPU_SETSIZE && size > 1) {
        if (rank % 2 == 1) {
            CPU_ZERO(&one);
            CPU_SET(second, &one);
            ::sched_setaffinity(0, sizeof one, &one);
        }
        EXPECT(members_of(MPI_COMM_TYPE_HW_UNGUIDED, 0, info) == (rank % 2 == 1 ? size / 2 : (size + 1) / 2));
        char named[MPI_MAX_INFO_VAL + 1] = "";
        int flag = 0;
        MPI_Info_get(info, "mpi_hw_resource_type", MPI_MAX_INFO_VAL, named, &flag);
        EXPECT(flag && std::string(named) != "mpi_shared_memory" && std::string(named) != "no such thing");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ::sched_setaffinity(0, sizeof before, &before);
    MPI_Info_free(&info);
}

void order_by_key() {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbhd_common_dirname", "/tmp");
    for (int type : {MPI_COMM_TYPE_SHARED, MPIX_COMM_TYPE_NEIGHBORHOOD}) {
        MPI_Comm made;
        MPI_Comm_split_type(MPI_COMM_WORLD, type, size - rank, info, &made);
        int place = -1;
        MPI_Comm_rank(made, &place);
        EXPECT(place == size - 1 - rank);
        MPI_Comm_free(&made);
    }
    MPI_Info_free(&info);
}

// The hints given to a split are those of what comes out; MPI_Comm_dup leaves them behind, since MPI 4.0.
void hints() {
    auto has_hint = [](MPI_Comm comm) {
        MPI_Info used;
        MPI_Comm_get_info(comm, &used);
        char value[8] = "";
        int flag = 0;
        MPI_Info_get(used, "mpi_assert_no_any_tag", 7, value, &flag);
        MPI_Info_free(&used);
        return flag && std::string(value) == "true";
    };
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm made, copy, with;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &made);
    MPI_Comm_dup(made, &copy);
    MPI_Comm_dup_with_info(copy, info, &with);
    EXPECT(has_hint(made) && !has_hint(copy) && has_hint(with));
    for (MPI_Comm* comm : {&made, &copy, &with}) {
        MPI_Comm_free(comm);
    }
    MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all_types(true);
    all_types(false);
    by_hardware();
    order_by_key();
    hints();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm none;
    EXPECT(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &none) == MPI_ERR_ARG);
    return report();
}
