// SPDX-License-Identifier: BSD-2-Clause
// What programs and MPICH's Fortran layer find in its library beside the standard's calls: requests that the
// library polls, the calls for failed processes, and the large counts of window makers.
#include <cstdint>

#include "check.hpp"

namespace {

int rank, size;

struct Work {
    int polls_left;
    int polls = 0;
    int queries = 0;
    int frees = 0;
    int cancels = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Request receive = MPI_REQUEST_NULL;  // done before the work is: the poll function calls MPI
    int fails = MPI_SUCCESS;
};

int query(void* state, MPI_Status* status) {
    static_cast<Work*>(state)->queries++;
    MPI_Status_set_elements(status, MPI_BYTE, 17);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 5;
    status->MPI_TAG = 6;
    return MPI_SUCCESS;
}

int release(void* state) {
    static_cast<Work*>(state)->frees++;
    return MPI_SUCCESS;
}

int cancel(void* state, int) {
    static_cast<Work*>(state)->cancels++;
    return MPI_SUCCESS;
}

int poll(void* state, MPI_Status*) {
    Work& work = *static_cast<Work*>(state);
    work.polls++;
    if (work.fails != MPI_SUCCESS) return work.fails;
    if (work.receive != MPI_REQUEST_NULL) {
        int done = 0;
        MPI_Test(&work.receive, &done, MPI_STATUS_IGNORE);
        if (done == 0) return MPI_SUCCESS;
    }
    if (--work.polls_left <= 0) MPI_Grequest_complete(work.request);
    return MPI_SUCCESS;
}

int wait_for(int count, void** states, double, MPI_Status* status) {
    EXPECT(count == 1);
    return poll(states[0], status);
}

void polled_by_wait_and_test() {
    Work waited{3}, tested{3};
    MPI_Status status;
    EXPECT(MPIX_Grequest_start(query, release, cancel, poll, nullptr, &waited, &waited.request) == MPI_SUCCESS);
    MPI_Request handle = waited.request;
    EXPECT(MPI_Wait(&handle, &status) == MPI_SUCCESS);
    int elements = 0;
    MPI_Get_elements(&status, MPI_BYTE, &elements);
    EXPECT(elements == 17 && status.MPI_SOURCE == 5 && status.MPI_TAG == 6);
    EXPECT(waited.polls == 3 && waited.queries == 1 && waited.frees == 1 && handle == MPI_REQUEST_NULL);

    EXPECT(MPIX_Grequest_start(query, release, cancel, poll, nullptr, &tested, &tested.request) == MPI_SUCCESS);
    handle = tested.request;
    for (int done = 0; done == 0;) MPI_Test(&handle, &done, MPI_STATUS_IGNORE);
    EXPECT(tested.polls == 3 && tested.frees == 1);
}

void by_class_and_wait_function() {
    MPIX_Grequest_class made, other;
    EXPECT(MPIX_Grequest_class_create(query, release, cancel, nullptr, wait_for, &made) == MPI_SUCCESS);
    EXPECT(MPIX_Grequest_class_create(query, release, cancel, poll, nullptr, &other) == MPI_SUCCESS);
    EXPECT(made != other);
    Work work{2};
    EXPECT(MPIX_Grequest_class_allocate(made, &work, &work.request) == MPI_SUCCESS);
    MPI_Request handle = work.request;
    EXPECT(MPI_Wait(&handle, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    EXPECT(work.polls == 2 && work.frees == 1);
    EXPECT(MPIX_Grequest_class_allocate(1000, &work, &work.request) == MPI_ERR_ARG);
    EXPECT(MPIX_Grequest_class_create(query, release, cancel, poll, nullptr, nullptr) == MPI_ERR_ARG);
}

void without_functions() {
    MPI_Request request;
    EXPECT(MPI_Grequest_start(nullptr, nullptr, nullptr, nullptr, &request) == MPI_SUCCESS);
    EXPECT(MPI_Cancel(&request) == MPI_SUCCESS);
    EXPECT(MPI_Grequest_complete(request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

// The poll function waits for a message that comes by itself, and several requests are under way.
void poll_function_calls_mpi() {
    Work first{1}, second{4};
    int got = -1, mine = rank;
    MPI_Irecv(&got, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, &first.receive);
    MPIX_Grequest_start(query, release, cancel, poll, nullptr, &first, &first.request);
    MPIX_Grequest_start(query, release, cancel, poll, nullptr, &second, &second.request);
    MPI_Request both[2] = {first.request, second.request};
    MPI_Send(&mine, 1, MPI_INT, rank, 7, MPI_COMM_WORLD);
    EXPECT(MPI_Waitall(2, both, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    EXPECT(got == rank && first.frees == 1 && second.frees == 1);
}

void freed_before_it_is_complete() {
    Work work{1};
    MPIX_Grequest_start(query, release, cancel, poll, nullptr, &work, &work.request);
    MPI_Request handle = work.request;
    EXPECT(MPI_Request_free(&handle) == MPI_SUCCESS);
    for (int i = 0; i < 100 && work.frees == 0; i++) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    EXPECT(work.frees == 1 && work.queries == 0);
}

void poll_function_fails() {
    Work work{1};
    work.fails = MPI_ERR_IO;
    MPIX_Grequest_start(query, release, cancel, poll, nullptr, &work, &work.request);
    MPI_Request handle = work.request;
    EXPECT(MPI_Wait(&handle, MPI_STATUS_IGNORE) == MPI_ERR_IO);
    EXPECT(work.polls == 1 && work.frees == 1);
}

void none_has_failed() {
    int flag = ~(1 << (rank % 30));
    int expected = ~0;
    for (int i = 0; i < size; i++) expected &= ~(1 << (i % 30));
    EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == MPI_SUCCESS);
    EXPECT(flag == expected);

    MPI_Comm again;
    EXPECT(MPIX_Comm_shrink(MPI_COMM_WORLD, &again) == MPI_SUCCESS);
    int alike = MPI_UNEQUAL;
    MPI_Comm_compare(MPI_COMM_WORLD, again, &alike);
    EXPECT(alike == MPI_CONGRUENT);
    MPI_Comm_free(&again);

    MPI_Group failed;
    EXPECT(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed) == MPI_SUCCESS);
    int members = -1;
    MPI_Group_size(failed, &members);
    EXPECT(members == 0);
    EXPECT(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed) == MPI_SUCCESS && failed == MPI_GROUP_EMPTY);
    int acked = -1;
    EXPECT(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 3, &acked) == MPI_SUCCESS && acked == 0);
    EXPECT(MPIX_Comm_ack_failed(MPI_COMM_WORLD, -1, &acked) == MPI_ERR_ARG);
    // One that is revoked refuses everything, and can be shrunk and freed.
    MPI_Comm revoked;
    int is = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &revoked);
    MPI_Comm_set_errhandler(revoked, MPI_ERRORS_RETURN);
    EXPECT(MPIX_Comm_is_revoked(revoked, &is) == MPI_SUCCESS && is == 0);
    MPI_Barrier(MPI_COMM_WORLD);  // the others' revoke would be told here
    EXPECT(MPIX_Comm_revoke(revoked) == MPI_SUCCESS);
    EXPECT(MPIX_Comm_is_revoked(revoked, &is) == MPI_SUCCESS && is == 1);
    EXPECT(MPI_Barrier(revoked) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Send(&is, 1, MPI_INT, 0, 0, revoked) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Recv(&is, 1, MPI_INT, MPI_ANY_SOURCE, 0, revoked, MPI_STATUS_IGNORE) == MPIX_ERR_REVOKED);
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT(MPIX_Comm_ishrink(revoked, &again, &request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS );
    MPI_Comm_compare(MPI_COMM_WORLD, again, &alike);
    EXPECT(alike == MPI_CONGRUENT);
    EXPECT(MPI_Barrier(again) == MPI_SUCCESS);
    MPI_Comm_free(&again);
    flag = rank == 0 ? 5 : 7;
    EXPECT(MPIX_Comm_iagree(revoked, &flag, &request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == 5);
    MPI_Comm_free(&revoked);
    EXPECT(MPIX_Comm_agree(MPI_COMM_NULL, &flag) == MPI_ERR_COMM);
    EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, nullptr) == MPI_ERR_ARG);
}

void agreement_of_two_groups() {
    if (size < 2) return;
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &both);
    int flag = ~(1 << rank);
    EXPECT(MPIX_Comm_agree(both, &flag) == MPI_SUCCESS);
    int expected = ~0;
    for (int i = 0; i < size; i++) expected &= ~(1 << i);
    EXPECT(flag == expected);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

void windows_of_large_units() {
    MPI_Win win;
    int64_t* base = nullptr;
    const MPI_Aint unit = sizeof(int64_t);
    EXPECT(MPI_Win_allocate_shared_c(unit, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    MPI_Aint bytes = 0, told = 0;
    int64_t* theirs = nullptr;
    EXPECT(MPI_Win_shared_query_c(win, (rank + 1) % size, &bytes, &told, &theirs) == MPI_SUCCESS);
    EXPECT(bytes == unit && told == unit && theirs != nullptr);
    MPI_Win_fence(0, win);
    *theirs = rank;
    MPI_Win_fence(0, win);
    EXPECT(*base == (rank + size - 1) % size);
    MPI_Win_free(&win);

    int64_t word = -1;
    const int64_t mine = rank;
    EXPECT(MPI_Win_create_c(&word, unit, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    EXPECT(word == (rank + size - 1) % size);
    MPI_Win_free(&win);

    EXPECT(MPI_Win_allocate_c(unit, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    MPI_Win_free(&win);
    EXPECT(MPI_Win_allocate_c(unit, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_ERR_DISP);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    polled_by_wait_and_test();
    by_class_and_wait_function();
    without_functions();
    poll_function_calls_mpi();
    freed_before_it_is_complete();
    poll_function_fails();
    none_has_failed();
    agreement_of_two_groups();
    windows_of_large_units();
    return report();
}
