// SPDX-License-Identifier: BSD-2-Clause
// What makes communicators, windows and files is refused by all processes when one of them finds something wrong with
// its arguments: the others would wait for it for ever. Each call is made with one process at fault, each of them in
// turn.
#include <unistd.h>

#include <utility>
#include <vector>

#include "check.hpp"
#include "time_limit.hpp"

namespace {

constexpr unsigned kMostSeconds = 60;

int rank, size;

// The rank at fault, which has to be told its own error; the others any.
void expect_refused(int at_fault, int code, int error, int line) {
    expect(rank == at_fault ? code == error : code != MPI_SUCCESS, "a call that one process refuses fails everywhere",
           line);
}
#define REFUSED(at_fault, code, error) expect_refused(at_fault, code, error, __LINE__)

int refuse_to_copy(MPI_Comm, int, void* who, void*, void*, int* flag) {
    *flag = 0;
    return *static_cast<int*>(who) == rank ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void splits(int one) {
    const bool wrong_here = rank == one;
    MPI_Comm made = MPI_COMM_NULL;
    REFUSED(one, MPI_Comm_split(MPI_COMM_WORLD, wrong_here ? -5 : 0, 0, &made), MPI_ERR_ARG);
    REFUSED(one,
            MPI_Comm_split_type(MPI_COMM_WORLD, wrong_here ? 12345 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made),
            MPI_ERR_ARG);
    EXPECT(made == MPI_COMM_NULL);
}

void topologies(int one) {
    const bool wrong_here = rank == one;
    MPI_Comm made = MPI_COMM_NULL;
    const int dims = wrong_here ? -1 : size, periods = 0;
    REFUSED(one, MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &made), MPI_ERR_DIMS);
    const std::vector<int> index(size_t(size), 1);
    const int edge = wrong_here ? size : 0;
    REFUSED(one, MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), &edge, 0, &made), MPI_ERR_TOPOLOGY);
    const int neighbour = wrong_here ? size : 0;
    REFUSED(one,
            MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nullptr, MPI_UNWEIGHTED, 1, &neighbour, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &made),
            MPI_ERR_ARG);
    const int degree = 1;
    REFUSED(one, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &neighbour, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                       &made), MPI_ERR_ARG);
    EXPECT(made == MPI_COMM_NULL);
}

void duplicates(int one) {
    MPI_Comm parent, made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &keyval, &one);
    MPI_Comm_set_attr(parent, keyval, nullptr);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    REFUSED(one, MPI_Comm_dup(parent, &made), MPI_ERR_OTHER);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Comm_idup(parent, &made, &request);
    if (rank != one) {
        EXPECT(code == MPI_SUCCESS);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    REFUSED(one, code, MPI_ERR_OTHER);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free(&parent);
}

void windows_and_files(int one) {
    const bool wrong_here = rank == one;
    MPI_Win window;
    int word = 0;
    void* base = nullptr;
    REFUSED(one, MPI_Win_create(&word, wrong_here ? -1 : 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), MPI_ERR_SIZE);
    REFUSED(one, MPI_Win_create(&word, 4, wrong_here ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), MPI_ERR_DISP);
    REFUSED(one, MPI_Win_allocate(8, wrong_here ? -3 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), MPI_ERR_DISP);
    MPI_File file;
    const int amode = wrong_here ? MPI_MODE_RDONLY | MPI_MODE_RDWR : MPI_MODE_RDONLY;
    REFUSED(one, MPI_File_open(MPI_COMM_WORLD, "/dev/null", amode, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    REFUSED(one, MPI_File_open(MPI_COMM_WORLD, wrong_here ? "" : "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
            MPI_ERR_BAD_FILE);
}

// The leader of the lower half names no rank; what only a leader can find wrong the other side cannot be told, and it
// does not call.
void leaders() {
    MPI_Comm half, made = MPI_COMM_WORLD;
    MPI_Comm_split(MPI_COMM_WORLD, rank < (size + 1) / 2, rank, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    const int code = MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size + 7, 3, &made);
    EXPECT(code == MPI_ERR_RANK && made == MPI_COMM_NULL);
    EXPECT(MPI_Intercomm_create(half, 0, MPI_COMM_NULL, 0, 3, &made) == MPI_ERR_COMM);
    EXPECT(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank + 1) % size, -3, &made) != MPI_SUCCESS);
    MPI_Comm_free(&half);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    made = MPI_COMM_WORLD;
    const int refused =
        MPI_Intercomm_create_from_groups(all, 0, all, size + 7, "refused", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    EXPECT(refused == MPI_ERR_RANK && made == MPI_COMM_NULL);
    // An empty group on either side: a local call, which one process alone may make.
    for (const bool alone : {false, true}) {
        if (alone && rank != 0) continue;
        const std::pair<MPI_Group, MPI_Group> sides[] = {
            {all, MPI_GROUP_EMPTY}, {MPI_GROUP_EMPTY, all}, {MPI_GROUP_EMPTY, MPI_GROUP_EMPTY}};
        for (const auto& [here, there] : sides) {
            made = MPI_COMM_WORLD;
            EXPECT(MPI_Intercomm_create_from_groups(here, 0, there, 0, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                                    &made) == MPI_SUCCESS);
            EXPECT(made == MPI_COMM_NULL);
        }
    }
    MPI_Group_free(&all);
}

}  // namespace

int main(int argc, char** argv) {
    time_limit::begin(kMostSeconds);  // a rank that waits for ever ends by this
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int one = 0; one < size; ++one) {
        splits(one);
        topologies(one);
        duplicates(one);
        windows_and_files(one);
    }
    leaders();
    return report();
}
