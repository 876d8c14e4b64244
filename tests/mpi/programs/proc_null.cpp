// SPDX-License-Identifier: BSD-2-Clause
// Messages with MPI_PROC_NULL through every kind of call, requests that are null or not started, tags at the bound, and
// which operators which reduction takes.
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "time_limit.hpp"

namespace {

constexpr unsigned kMostSeconds = 60;

int rank, size;

bool is_of_proc_null(const MPI_Status& status) {
    int items = -1;
    MPI_Get_count(&status, MPI_INT, &items);
    return status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && items == 0;
}

// A request that receives from MPI_PROC_NULL, once or, when persistent, twice.
void ends_as_of_proc_null(MPI_Request request, bool persistent, int line) {
    for (int round = 0; round < 1 + persistent; ++round) {
        if (persistent) MPI_Start(&request);
        MPI_Status status = {7, 7, 7, 7, 7};
        expect(MPI_Wait(&request, &status) == MPI_SUCCESS && is_of_proc_null(status), "status of MPI_PROC_NULL", line);
    }
    if (persistent) MPI_Request_free(&request);
}

void messages() {
    int v = 5, w = 6;
    MPI_Status status = {7, 7, 7, 7, 7};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Recv_init_c(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    ends_as_of_proc_null(request, true, __LINE__);
    MPI_Precv_init(&v, 1, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    ends_as_of_proc_null(request, true, __LINE__);
    MPI_Irecv_c(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    ends_as_of_proc_null(request, false, __LINE__);
    MPI_Isendrecv(&w, 1, MPI_INT, MPI_PROC_NULL, 3, &v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    ends_as_of_proc_null(request, false, __LINE__);
    MPI_Isendrecv_replace(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    ends_as_of_proc_null(request, false, __LINE__);
    // On one side: the other message is sent and received, and the status is that of the receive.
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isendrecv_replace(&w, 1, MPI_INT, rank, 4, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &sent);
    int got = 0;
    MPI_Isendrecv(&v, 1, MPI_INT, MPI_PROC_NULL, 3, &got, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request);
    EXPECT(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == rank && status.MPI_TAG == 4 && got == 6);
    ends_as_of_proc_null(sent, false, __LINE__);
    EXPECT(w == 6);
    EXPECT(MPI_Sendrecv_replace_c(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status) ==
               MPI_SUCCESS && is_of_proc_null(status));
    int flag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    EXPECT(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status) == MPI_SUCCESS && flag);
    EXPECT(message == MPI_MESSAGE_NO_PROC && is_of_proc_null(status));
    MPI_Imrecv_c(&v, 1, MPI_INT, &message, &request);
    ends_as_of_proc_null(request, false, __LINE__);
    EXPECT(v == 5);
}

void partitions() {
    int flag = -1, v[2] = {1, 2};
    EXPECT(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag) == MPI_SUCCESS && flag == 1);
    EXPECT(MPI_Pready(0, MPI_REQUEST_NULL) == MPI_ERR_REQUEST);
    MPI_Request request;
    MPI_Precv_init(v, 2, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT(MPI_Parrived(request, 1, &flag) == MPI_SUCCESS && flag == 1);  // not started
    MPI_Start(&request);
    EXPECT(MPI_Parrived(request, 0, &flag) == MPI_SUCCESS && flag == 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Psend_init(v, 2, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT(MPI_Pready(0, request) == MPI_ERR_REQUEST);  // not started
    MPI_Start(&request);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    EXPECT(!flag);
    EXPECT(MPI_Pready_range(0, 1, request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Request_free(&request);
}

void windows() {
    int word = 9, v = 5, result = 6, compare = 7;
    MPI_Win window;
    MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Request requests[4];
    EXPECT(MPI_Put_c(&v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window) == MPI_SUCCESS);
    EXPECT(MPI_Get(&v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window) == MPI_SUCCESS);
    EXPECT(MPI_Fetch_and_op(&v, &result, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, window) == MPI_SUCCESS);
    EXPECT(MPI_Compare_and_swap(&v, &compare, &result, MPI_INT, MPI_PROC_NULL, 0, window) == MPI_SUCCESS);
    MPI_Rput(&v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window, &requests[0]);
    MPI_Rget(&v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window, &requests[1]);
    MPI_Raccumulate(&v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, window, &requests[2]);
    MPI_Rget_accumulate(&v, 1, MPI_INT, &result, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, window,
                        &requests[3]);
    EXPECT(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    MPI_Win_unlock_all(window);
    EXPECT(v == 5 && result == 6 && word == 9);
    MPI_Win_free(&window);
}

// At the ends of a line there is no rank.
void neighbours() {
    MPI_Comm line;
    const int dims = size, periods = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &line);
    int from[2] = {-1, -1};
    const int mine[2] = {rank * 2, rank * 2 + 1};
    MPI_Request request;
    EXPECT(MPI_Neighbor_alltoall_init(mine, 1, MPI_INT, from, 1, MPI_INT, line, MPI_INFO_NULL, &request) ==
           MPI_SUCCESS);
    for (int round = 0; round < 2; ++round) {
        from[0] = from[1] = -1;
        MPI_Start(&request);
        EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        EXPECT(from[0] == (rank > 0 ? (rank - 1) * 2 + 1 : -1) && from[1] == (rank + 1 < size ? (rank + 1) * 2 : -1));
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&line);
}

// Beside the root of an inter-communicator no argument but the root means anything.
void beside_the_root() {
    if (size < 2) return;
    const bool left = rank < size / 2;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, left, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, left ? size / 2 : 0, INT_MAX, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int own = 0, v = 1, sum = -1;
    MPI_Comm_rank(inter, &own);
    if (left) {
        EXPECT(MPI_Reduce(&v, nullptr, 1, MPI_INT, MPI_SUM, 0, inter) == MPI_SUCCESS);
        EXPECT(MPI_Bcast(&v, 1, MPI_INT, 0, inter) == MPI_SUCCESS && v == 77);
    } else if (own == 0) {
        EXPECT(MPI_Reduce(nullptr, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter) == MPI_SUCCESS && sum == size / 2);
        int told = 77;
        EXPECT(MPI_Bcast(&told, 1, MPI_INT, MPI_ROOT, inter) == MPI_SUCCESS);
    } else {
        EXPECT(MPI_Reduce(nullptr, nullptr, -4, MPI_DATATYPE_NULL, MPI_OP_NULL, MPI_PROC_NULL, inter) == MPI_SUCCESS);
        EXPECT(MPI_Bcast(nullptr, -4, MPI_DATATYPE_NULL, MPI_PROC_NULL, inter) == MPI_SUCCESS);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

// Counts and displacements are read by the call that makes the request.
void counts_after_init() {
    const auto all_of = static_cast<size_t>(size);
    std::vector<int> counts(all_of, 1), displacements, sent(all_of, 0), received(all_of, -1);
    for (int i = 0; i < size; ++i) {
        displacements.push_back(i);
        sent[size_t(i)] = 100 * rank + i;
    }
    MPI_Request requests[3];
    int sum = -1;
    std::vector<int> all(size_t(size), -1);
    MPI_Alltoallv_init(sent.data(), counts.data(), displacements.data(), MPI_INT, received.data(), counts.data(),
                       displacements.data(), MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Reduce_scatter_init(sent.data(), &sum, counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &requests[1]);
    MPI_Allgatherv_init(&rank, 1, MPI_INT, all.data(), counts.data(), displacements.data(), MPI_INT, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &requests[2]);
    counts.assign(size_t(size), INT_MAX);
    displacements.assign(size_t(size), INT_MAX);
    for (int round = 0; round < 3; ++round) {
        received.assign(size_t(size), -1);
        all.assign(size_t(size), -1);
        MPI_Startall(3, requests);
        EXPECT(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < size; ++i) EXPECT(received[size_t(i)] == 100 * i + rank && all[size_t(i)] == i);
        EXPECT(sum == 50 * size * (size - 1) + rank * size);
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

// Every tag up to the bound is a tag of its own, beside what the library itself sends.
void tags() {
    int* bound = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    EXPECT(flag && *bound >= 32767);
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    const int tried[] = {0, 5, *bound / 4, *bound / 2, *bound - 1, *bound};
    constexpr int kTried = 6;
    int in[kTried], out[kTried];
    MPI_Request requests[2 * kTried];
    for (int i = 0; i < kTried; ++i) {
        MPI_Precv_init(&in[i], 1, 1, MPI_INT, previous, tried[i], MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    }
    for (int i = kTried; i-- > 0;) {
        MPI_Psend_init(&out[i], 1, 1, MPI_INT, next, tried[i], MPI_COMM_WORLD, MPI_INFO_NULL, &requests[kTried + i]);
    }
    MPI_Startall(2 * kTried, requests);
    for (int i = 0; i < kTried; ++i) {
        out[i] = 10 + i;
        MPI_Pready(0, requests[kTried + i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2 * kTried, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kTried; ++i) EXPECT(in[i] == 10 + i);
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    for (int i = 0; i < kTried; ++i) MPI_Irecv(&in[i], 1, MPI_INT, previous, tried[i], MPI_COMM_WORLD, &requests[i]);
    for (int i = kTried; i-- > 0;)
        MPI_Isend(&out[i], 1, MPI_INT, next, tried[i], MPI_COMM_WORLD, &requests[kTried + i]);
    MPI_Waitall(2 * kTried, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kTried; ++i) EXPECT(in[i] == 10 + i);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int tag : tried) {
        MPI_Comm made = MPI_COMM_NULL;
        EXPECT(MPI_Comm_create_group(MPI_COMM_WORLD, all, tag, &made) == MPI_SUCCESS);
        if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    }
    MPI_Group_free(&all);
    // One above the bound, where there is one, and below 0.
    const int wrong_tag = int(uint32_t(*bound) + 1);
    int v = 0;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    EXPECT(MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, wrong_tag, MPI_COMM_WORLD) == MPI_ERR_TAG);
    EXPECT(MPI_Isend(&v, 1, MPI_INT, 0, wrong_tag, MPI_COMM_WORLD, &request) == MPI_ERR_TAG);
    EXPECT(MPI_Irecv(&v, 1, MPI_INT, 0, wrong_tag, MPI_COMM_WORLD, &request) == MPI_ERR_TAG);
    EXPECT(MPI_Send_init(&v, 1, MPI_INT, 0, wrong_tag, MPI_COMM_WORLD, &request) == MPI_ERR_TAG);
    EXPECT(MPI_Psend_init(&v, 1, 1, MPI_INT, 0, wrong_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_TAG);
    EXPECT(MPI_Iprobe(0, wrong_tag, MPI_COMM_WORLD, &flag, &status) == MPI_ERR_TAG);
    EXPECT(MPI_Improbe(0, wrong_tag, MPI_COMM_WORLD, &flag, &message, &status) == MPI_ERR_TAG);
    EXPECT(MPI_Isendrecv(&v, 1, MPI_INT, 0, 0, &v, 1, MPI_INT, 0, wrong_tag, MPI_COMM_WORLD, &request) == MPI_ERR_TAG);
}

// MPICH's type for numbers of 16 bits: 1 + 2 is 3, and twice 3 is 6.
void halves() {
    int bytes = 0;
    EXPECT(MPI_Type_size(MPIX_C_FLOAT16, &bytes) == MPI_SUCCESS && bytes == 2);
    const uint16_t one = 0x3c00, two = 0x4000;
    uint16_t result = two;
    EXPECT(MPI_Reduce_local(&one, &result, 1, MPIX_C_FLOAT16, MPI_SUM) == MPI_SUCCESS && result == 0x4200);
    EXPECT(MPI_Reduce_local(&two, &result, 1, MPIX_C_FLOAT16, MPI_PROD) == MPI_SUCCESS && result == 0x4600);
    EXPECT(MPI_Reduce_local(&one, &result, 1, MPIX_C_FLOAT16, MPI_MAX) == MPI_SUCCESS && result == 0x4600);
    EXPECT(MPI_Reduce_local(&one, &result, 1, MPIX_C_FLOAT16, MPI_BAND) == MPI_ERR_OP);
}

// MPI_REPLACE and MPI_NO_OP are for windows alone, and of those MPI_NO_OP for calls that fetch.
void operators() {
    int a = 1, b = 2;
    MPI_Request request;
    for (MPI_Op op : {MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL}) {
        EXPECT(MPI_Reduce_local(&a, &b, 1, MPI_INT, op) == MPI_ERR_OP && b == 2);
        EXPECT(MPI_Allreduce(&a, &b, 1, MPI_INT, op, MPI_COMM_WORLD) == MPI_ERR_OP);
        EXPECT(MPI_Iscan(&a, &b, 1, MPI_INT, op, MPI_COMM_WORLD, &request) == MPI_ERR_OP);
        EXPECT(MPI_Exscan(&a, &b, 1, MPI_INT, op, MPI_COMM_WORLD) == MPI_ERR_OP);
        EXPECT(MPI_Reduce_scatter_block(&a, &b, 1, MPI_INT, op, MPI_COMM_WORLD) == MPI_ERR_OP);
        EXPECT(MPI_Reduce_init(&a, &b, 1, MPI_INT, op, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_OP);
    }
    EXPECT(MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_BXOR, MPI_COMM_WORLD) == MPI_ERR_OP);
    MPI_Win window;
    MPI_Win_create(&b, sizeof b, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    EXPECT(MPI_Accumulate(&a, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, window) == MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&a, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, window) == MPI_SUCCESS);
    MPI_Op own;
    MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own);
    EXPECT(MPI_Accumulate(&a, 1, MPI_INT, 0, 0, 1, MPI_INT, own, window) == MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&a, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, window) == MPI_ERR_OP);
    MPI_Op_free(&own);
    MPI_Win_unlock(0, window);
    MPI_Win_free(&window);
}

}  // namespace

int main(int argc, char** argv) {
    time_limit::begin(kMostSeconds);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    messages();
    partitions();
    windows();
    neighbours();
    beside_the_root();
    counts_after_init();
    tags();
    operators();
    halves();
    return report();
}
