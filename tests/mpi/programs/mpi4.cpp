// SPDX-License-Identifier: BSD-2-Clause
// What MPI 4.0 added: sessions before and beside the world, partitioned messages whose sides divide them differently,
// counts of 64 bits.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

// A session opened before MPI_Init, its sets of processes, and a communicator made of one of them.
void sessions() {
    MPI_Session session;
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    int flag = -1;
    MPI_Initialized(&flag);
    EXPECT(flag == 0);
    int sets = 0;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    EXPECT(sets >= 2);
    int length = 0;
    char name[MPI_MAX_PSET_NAME_LEN] = "";
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, nullptr);
    EXPECT(length == int(sizeof "mpi://WORLD"));
    length = 6;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    EXPECT(std::string(name) == "mpi:/" && length == int(sizeof "mpi://WORLD"));
    EXPECT(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, sets, &length, name) == MPI_ERR_ARG);

    MPI_Group group;
    EXPECT(MPI_Group_from_session_pset(session, "mpi://none", &group) == MPI_ERR_ARG);
    EXPECT(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    int size = 0;
    MPI_Group_size(group, &size);
    MPI_Info info;
    MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
    char value[16] = "";
    MPI_Info_get(info, "mpi_size", 15, value, &flag);
    EXPECT(flag && std::string(value) == std::to_string(size));
    MPI_Info_free(&info);

    MPI_Comm comm;
    EXPECT(MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    MPI_Group_free(&group);
    int rank = 0, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == size * (size - 1) / 2);
    EXPECT(MPI_Send(&rank, 1, MPI_INT, size, 0, comm) == MPI_ERR_RANK);
    MPI_Comm_free(&comm);
    EXPECT(MPI_Session_finalize(&session) == MPI_SUCCESS && session == MPI_SESSION_NULL);
}

void session_in_the_world() {
    MPI_Session session;
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    MPI_Group self;
    MPI_Comm comm;
    EXPECT(MPI_Group_from_session_pset(session, "mpi://SELF", &self) == MPI_SUCCESS);
    EXPECT(MPI_Comm_create_from_group(self, "alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    int size = 0;
    MPI_Comm_size(comm, &size);
    EXPECT(size == 1);
    MPI_Comm_free(&comm);
    MPI_Group_free(&self);
    MPI_Session_finalize(&session);
}

constexpr int kItems = 96;

// The sender divides into `out` parts, the receiver into `in`; parts are ready from the last to the first. With gaps,
// the receiver has every second int only.
void partitioned(int out, int in, bool gaps) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::vector<int> source(kItems), target(2 * kItems);
    MPI_Datatype spaced;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Request send, receive;
    MPI_Psend_init(source.data(), out, kItems / out, MPI_INT, to, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(target.data(), in, kItems / in, gaps ? spaced : MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &receive);
    MPI_Type_free(&spaced);
    for (int round = 0; round < 3; ++round) {
        std::iota(source.begin(), source.end(), 1000 * rank + round);
        std::fill(target.begin(), target.end(), -1);
        MPI_Start(&receive);
        MPI_Start(&send);
        int flag = 0;
        for (int part = out - 1; part > 0; --part) {
            EXPECT(MPI_Pready(part, send) == MPI_SUCCESS);
        }
        // The last part must come before the first one is ready: nothing waits for the whole.
        if (out > 1 && in > 1) {
            for (flag = 0; !flag;) {
                MPI_Parrived(receive, in - 1, &flag);
            }
            EXPECT(target[size_t(kItems - 1) * (gaps ? 2 : 1)] == 1000 * from + round + kItems - 1);
        }
        MPI_Pready_range(0, 0, send);
        MPI_Status status;
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, &status);
        int count = 0;
        MPI_Get_count(&status, MPI_INT, &count);
        EXPECT(status.MPI_SOURCE == from && status.MPI_TAG == 5 && count == kItems);
        for (int i = 0; i < kItems; ++i) {
            EXPECT(target[size_t(i) * (gaps ? 2 : 1)] == 1000 * from + round + i);
        }
        MPI_Parrived(receive, 0, &flag);
        EXPECT(flag == 1);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

// A pair that was made and never started must not confuse the next one of that source and tag.
void partitioned_not_started() {
    int rank = 0, size = 0, item = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request send, receive;
    MPI_Precv_init(&item, 1, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Request_free(&receive);
    MPI_Psend_init(&item, 1, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Request_free(&send);
}

void partitioned_errors() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int item = 0, flag = 0;
    MPI_Request request;
    EXPECT(MPI_Precv_init(&item, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_INFO_NULL, &request) == MPI_ERR_RANK);
    EXPECT(MPI_Precv_init(&item, 1, 1, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_INFO_NULL, &request) == MPI_ERR_TAG);
    EXPECT(MPI_Psend_init(&item, 0, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request) == MPI_ERR_ARG);
    MPI_Psend_init(&item, 1, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &request);
    EXPECT(MPI_Pready(0, request) == MPI_ERR_REQUEST);
    MPI_Start(&request);
    EXPECT(MPI_Pready(1, request) == MPI_ERR_ARG);
    EXPECT(MPI_Pready(0, request) == MPI_SUCCESS);
    EXPECT(MPI_Pready(0, request) == MPI_ERR_ARG);
    EXPECT(MPI_Parrived(request, 0, &flag) == MPI_ERR_REQUEST);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

// Types larger than 2 GiB are described, not sent; the functions are also called with small counts and their data
// looked at.
void large_counts() {
    MPI_Datatype large;
    const MPI_Count items = MPI_Count(3) << 30;
    MPI_Type_contiguous_c(items, MPI_INT, &large);
    MPI_Count size = 0, lb = 0, extent = 0;
    MPI_Type_size_c(large, &size);
    MPI_Type_get_extent_c(large, &lb, &extent);
    EXPECT(size == 4 * items && lb == 0 && extent == 4 * items);
    int small = 0;
    MPI_Type_size(large, &small);
    EXPECT(small == MPI_UNDEFINED);
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    int combiner = 0;
    MPI_Type_get_envelope_c(large, &integers, &addresses, &counts, &types, &combiner);
    EXPECT(integers == 0 && addresses == 0 && counts == 1 && types == 1 && combiner == MPI_COMBINER_CONTIGUOUS);
    MPI_Count told = 0;
    MPI_Datatype old;
    MPI_Type_get_contents_c(large, 0, 0, 1, 1, nullptr, nullptr, &told, &old);
    EXPECT(told == items && old == MPI_INT);
    MPI_Type_free(&large);

    int rank = 0, number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &number);
    std::vector<int> mine(3, rank), all(3 * size_t(number));
    MPI_Allgather_c(mine.data(), 3, MPI_INT, all.data(), 3, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < number; ++r) {
        EXPECT(all[3 * size_t(r)] == r && all[3 * size_t(r) + 2] == r);
    }
    std::vector<MPI_Count> shares(size_t(number), 1);
    std::vector<MPI_Aint> places(shares.size());
    for (int r = 0; r < number; ++r) {
        places[size_t(r)] = number - 1 - r;
    }
    std::fill(all.begin(), all.end(), -1);
    MPI_Request request;
    MPI_Igatherv_c(&rank, 1, MPI_INT, all.data(), shares.data(), places.data(), MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Status status;
    MPI_Wait(&request, &status);
    for (int r = 0; rank == 0 && r < number; ++r) {
        EXPECT(all[size_t(number - 1 - r)] == r);
    }
    const int to = (rank + 1) % number, from = (rank + number - 1) % number;
    int got[2] = {-1, -1};
    MPI_Sendrecv_c(mine.data(), 2, MPI_INT, to, 1, got, 2, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    MPI_Count count = 0;
    MPI_Get_count_c(&status, MPI_INT, &count);
    EXPECT(count == 2 && got[0] == from && got[1] == from);

    // Nothing has no type.
    std::vector<int> none(shares.size(), 0);
    std::vector<MPI_Datatype> no_types(shares.size(), MPI_DATATYPE_NULL);
    EXPECT(MPI_Alltoallw(nullptr, none.data(), none.data(), no_types.data(), nullptr, none.data(), none.data(),
                         no_types.data(), MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(MPI_Gatherv(nullptr, 0, MPI_DATATYPE_NULL, got, none.data(), none.data(), MPI_INT, 0, MPI_COMM_WORLD) ==
           MPI_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
    sessions();
    MPI_Init(&argc, &argv);
    int version = 0, subversion = -1;
    MPI_Get_version(&version, &subversion);
    EXPECT(version == MPI_VERSION && subversion == MPI_SUBVERSION);
    session_in_the_world();
    partitioned_not_started();
    partitioned(1, 1, false);
    partitioned(8, 8, false);
    partitioned(4, 96, false);
    partitioned(32, 3, true);
    partitioned(12, 8, true);
    partitioned_errors();
    large_counts();
    return report();
}
