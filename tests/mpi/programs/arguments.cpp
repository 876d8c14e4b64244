// SPDX-License-Identifier: BSD-2-Clause
// Wrong arguments are refused with their error class, and a call that was refused was none: the collective calls after
// it match those of the others.
#include <vector>

#include "check.hpp"

namespace {

int rank, size;

void nowhere_to_answer() {
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    EXPECT(MPI_Comm_size(MPI_COMM_WORLD, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_create(MPI_COMM_WORLD, group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_rank(group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_union(group, group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_incl(group, 1, nullptr, &group) == MPI_ERR_ARG);
    EXPECT(MPI_Type_contiguous(3, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Type_contiguous_c(3, MPI_INT, nullptr) == MPI_ERR_ARG);
    MPI_Aint lb = 0;
    EXPECT(MPI_Type_get_extent(MPI_INT, &lb, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Info_create(nullptr) == MPI_ERR_ARG);
    MPI_Group_free(&group);
}

void no_grid() {
    const int dims[2] = {size, size + 1}, periods[2] = {0, 0};
    MPI_Comm grid = MPI_COMM_SELF;
    EXPECT(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) != MPI_SUCCESS && grid == MPI_COMM_NULL);
}

// The same memory given and taken, by every process and by one alone.
void aliases() {
    std::vector<int> v(size_t(size) * 2, rank), counts(size_t(size), 1), at(size_t(size), 0);
    for (int r = 0; r < size; ++r) {
        at[size_t(r)] = r;
    }
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    int* own = v.data() + rank;
    EXPECT(MPI_Allreduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Iallreduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm, &request) == MPI_ERR_BUFFER);
    EXPECT(MPI_Scan(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Reduce_scatter_block(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allgather(own, 1, MPI_INT, v.data(), 1, MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allgatherv(own, 1, MPI_INT, v.data(), counts.data(), at.data(), MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Alltoall(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Alltoallv(v.data(), counts.data(), at.data(), MPI_INT, v.data(), counts.data(), at.data(), MPI_INT, comm) ==
           MPI_ERR_BUFFER);
    EXPECT(MPI_Allgather_init(own, 1, MPI_INT, v.data(), 1, MPI_INT, comm, MPI_INFO_NULL, &request) == MPI_ERR_BUFFER);
    EXPECT(MPI_Reduce_local(v.data(), MPI_IN_PLACE, 1, MPI_INT, MPI_SUM) == MPI_ERR_BUFFER);
    if (rank == 0) {  // the others are not asked, and know nothing of it
        EXPECT(MPI_Gather(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Scatter(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Reduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Igatherv(v.data(), 1, MPI_INT, v.data(), counts.data(), at.data(), MPI_INT, 0, comm, &request) ==
               MPI_ERR_BUFFER);
    }
    int sum = -1;
    EXPECT(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size * (size - 1) / 2);
    // Refused at the root alone: it makes up for it, and its second call is what the others called.
    int error = MPI_Reduce(&rank, rank == 0 ? &rank : nullptr, 1, MPI_INT, MPI_SUM, 0, comm);
    EXPECT(error == (rank == 0 ? MPI_ERR_BUFFER : MPI_SUCCESS));
    if (error) {
        EXPECT(MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS && sum == size * (size - 1) / 2);
    }
    // Nothing is nowhere, and parts of one array that do not meet may be given and taken.
    EXPECT(MPI_Allgather(v.data(), 0, MPI_INT, v.data(), 0, MPI_INT, comm) == MPI_SUCCESS);
    std::vector<int> beyond = at;
    for (int& one : beyond) {
        one += size;
    }
    EXPECT(MPI_Alltoallv(v.data(), counts.data(), at.data(), MPI_INT, v.data(), counts.data(), beyond.data(), MPI_INT, comm) ==
           MPI_SUCCESS);
    EXPECT(v[size_t(size)] == 0 && v.back() == size - 1);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    nowhere_to_answer();
    no_grid();
    aliases();
    return report();
}
