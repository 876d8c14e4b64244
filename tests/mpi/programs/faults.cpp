// SPDX-License-Identifier: BSD-2-Clause
// Mistakes of programs that CMPI_CHECK=1 finds: faults NAME... makes them in turn. check_test.py has what is said of
// each. Two processes, unless more are said there. Those that begin with "sessions" go without MPI_Init.
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

int rank = 0;
int size = 0;
int numbers[1000];
int others[1000];
float reals[100];
MPI_Request request = MPI_REQUEST_NULL;
MPI_Comm made_comm = MPI_COMM_NULL;
MPI_Datatype made_type = MPI_DATATYPE_NULL;

void add(void*, void*, int*, MPI_Datatype*) {}

void kind() { rank == 0 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Bcast(numbers, 3, MPI_INT, 0, MPI_COMM_WORLD); }
void root() { MPI_Bcast(numbers, 3, MPI_INT, rank, MPI_COMM_WORLD); }
void count() { MPI_Bcast(numbers, 4 - rank, MPI_INT, 0, MPI_COMM_WORLD); }
void type() { MPI_Bcast(numbers, 4, rank == 0 ? MPI_INT : MPI_FLOAT, 0, MPI_COMM_WORLD); }
void operation() {
    MPI_Allreduce(numbers, others, 2, MPI_INT, rank == 0 ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
}
void reduce_count() { MPI_Reduce(numbers, others, 2 + rank, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }
void gather_count() { MPI_Gather(numbers, 1 + rank, MPI_INT, others, 1, MPI_INT, 0, MPI_COMM_WORLD); }
void gatherv_counts() {
    const int counts[] = {2, 3};
    const int places[] = {0, 2};
    MPI_Gatherv(numbers, 2, MPI_INT, others, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
}
void scatter_count() { MPI_Scatter(numbers, 5, MPI_INT, others, 5 + rank, MPI_INT, 0, MPI_COMM_WORLD); }
void allgather_count() { MPI_Allgather(numbers, 1 + rank, MPI_INT, others, 2, MPI_INT, MPI_COMM_WORLD); }
void alltoallv_counts() {
    const int sent[] = {1, 1};
    const int received[] = {1, 1 + rank};
    const int places[] = {0, 10};
    const int wrong_received[] = {1 + rank, 1};
    MPI_Alltoallv(numbers, sent, places, MPI_INT, others, rank == 0 ? received : wrong_received, places, MPI_INT,
                  MPI_COMM_WORLD);
}
void reduce_scatter_counts() {
    const int counts[] = {1 + rank, 2};
    MPI_Reduce_scatter(numbers, others, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
void waiting_or_not() {
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}
void later_root() {
    MPI_Ibcast(numbers, 3, MPI_INT, rank, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void persistent_root() {
    MPI_Bcast_init(numbers, 3, MPI_INT, rank, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void second_call() {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(numbers, others, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(numbers, 1, MPI_INT, 0, MPI_COMM_WORLD);
}
void communicator() {
    MPI_Comm_dup(MPI_COMM_WORLD, &made_comm);
    MPI_Comm_set_name(made_comm, "halo");
    MPI_Barrier(rank == 0 ? MPI_COMM_WORLD : made_comm);
    MPI_Barrier(rank == 0 ? made_comm : MPI_COMM_WORLD);
}
void making() { rank == 0 ? MPI_Comm_dup(MPI_COMM_WORLD, &made_comm) : MPI_Barrier(MPI_COMM_WORLD); }
void early_end() {
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
}
// Of two halves, the upper one: its ranks are others than those in the world.
void part() {
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &made_comm);
    if (rank >= 2) MPI_Bcast(numbers, 1, MPI_INT, rank - 2, made_comm);
    MPI_Comm_free(&made_comm);
}

void left_send() {
    if (rank == 0)
        MPI_Isend(others, 10, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
    else
        MPI_Recv(numbers, 10, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void left_receive() {
    if (rank == 1) MPI_Irecv(reals, 25, MPI_INT, 0, 99, MPI_COMM_WORLD, &request);
}
void left_persistent() { MPI_Recv_init(numbers, 25, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request); }
void left_collective() { MPI_Ibarrier(MPI_COMM_WORLD, &request); }
void left_comm() { MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made_comm); }
void left_type() {
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &made_type);
    MPI_Type_commit(&made_type);
}
void left_group() {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_free(&group);
}
void left_operation() {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add, 1, &op);
}
void left_window() {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(numbers, sizeof numbers, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
}
void left_file() {
    MPI_File file = MPI_FILE_NULL;
    MPI_File_open(MPI_COMM_SELF, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}
void left_info() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_dup(info, &info);
    MPI_Info_free(&info);
    MPI_Comm_get_info(MPI_COMM_SELF, &info);
}
void told(MPI_Comm*, int*, ...) {}
void left_errhandler() {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(told, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Win_create_errhandler(told, &handler);
}
void left_keyval() {
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Win_free_keyval(&keyval);
}
// The type that another one is made of has the call that made it.
void left_inner() {
    const int blocks[] = {1};
    const MPI_Aint places[] = {0};
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(7, MPI_INT, &inner);
    MPI_Type_create_struct(1, blocks, places, &inner, &made_type);
    MPI_Type_free(&made_type);
}
void left_contents() {
    int numbers_of[1];
    MPI_Aint none[1];
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(7, MPI_INT, &inner);
    MPI_Type_contiguous(2, inner, &made_type);
    MPI_Type_free(&inner);
    MPI_Type_get_contents(made_type, 1, 0, 1, numbers_of, none, &inner);
    MPI_Type_free(&made_type);
}
int refuses(MPI_Comm, int, void*, void*) { return MPI_ERR_OTHER; }
// Calls that fail and take nothing away.
void left_refused() {
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_dup(MPI_COMM_SELF, &made_comm);
    MPI_Comm_set_errhandler(made_comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &keyval, nullptr);
    MPI_Comm_set_attr(made_comm, keyval, nullptr);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free(&made_comm);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_free_keyval(&keyval);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
// While a session is open, so may be all that it has made: nothing is told in MPI_Finalize.
void left_session() {
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &made_type);
}
void sessions_left() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "left", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made_comm);
    MPI_Session_finalize(&session);
}
void left_message() {
    if (rank == 0) MPI_Send(numbers, 4, MPI_INT, 1, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Mprobe(0, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    }
}

void end_all(int n, MPI_Request* requests) { MPI_Waitall(n, requests, MPI_STATUSES_IGNORE); }

void two_receives() {
    MPI_Request both[2];
    const int other = 1 - rank;
    MPI_Irecv(numbers, 10, MPI_INT, other, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Irecv(numbers + 8, 10, MPI_INT, other, 2, MPI_COMM_WORLD, &both[1]);
    MPI_Send(others, 10, MPI_INT, other, 1, MPI_COMM_WORLD);
    MPI_Send(others, 10, MPI_INT, other, 2, MPI_COMM_WORLD);
    end_all(2, both);
}
void send_of_receive() {
    MPI_Request both[2];
    const int other = 1 - rank;
    MPI_Irecv(numbers, 10, MPI_INT, other, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(numbers, 10, MPI_INT, other, 1, MPI_COMM_WORLD, &both[1]);
    end_all(2, both);
}
void columns() {
    MPI_Request both[2];
    const int other = 1 - rank;
    MPI_Type_vector(10, 1, 10, MPI_INT, &made_type);
    MPI_Type_commit(&made_type);
    MPI_Irecv(numbers, 1, made_type, other, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Irecv(numbers + 30, 5, MPI_INT, other, 2, MPI_COMM_WORLD, &both[1]);
    MPI_Send(others, 10, MPI_INT, other, 1, MPI_COMM_WORLD);
    MPI_Send(others, 5, MPI_INT, other, 2, MPI_COMM_WORLD);
    end_all(2, both);
    MPI_Type_free(&made_type);
}

void unreceived() {
    if (rank == 0) MPI_Send(numbers, 10, MPI_INT, 1, 41, MPI_COMM_WORLD);
}
void other_tag() {
    if (rank == 0) {
        MPI_Send(numbers, 10, MPI_INT, 1, 6, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(numbers, 10, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}
void unreceived_of_freed() {
    MPI_Comm_dup(MPI_COMM_WORLD, &made_comm);
    MPI_Comm_set_name(made_comm, "halo");
    if (rank == 0) MPI_Send(numbers, 2, MPI_INT, 1, 3, made_comm);
    MPI_Barrier(made_comm);
    MPI_Comm_free(&made_comm);
}

// The process ends while a thread is in the middle of a call, and holds the library's lock for ever.
std::atomic<bool> is_inside{false};
int never_returns(MPI_Comm, int, void*, void*, void*, int*) {
    is_inside = true;
    for (;;) ::pause();
}
int ends_inside(MPI_Comm, int, void*, void*, void*, int*) { std::exit(0); }

void copy_of_self(MPI_Comm_copy_attr_function* copies) {
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "copied", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made_comm);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Comm_set_attr(made_comm, keyval, nullptr);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(made_comm, &copy);
}
void sessions_exit_beside() {
    std::thread(copy_of_self, never_returns).detach();
    while (!is_inside) std::this_thread::yield();
    std::exit(0);
}
void sessions_exit_inside() { copy_of_self(ends_inside); }

int free_at_end(MPI_Comm, int, void* attribute, void*) {
    delete static_cast<int*>(attribute);
    MPI_Type_free(&made_type);
    return MPI_SUCCESS;
}

// What is freed after MPI_Finalize, as it may be.
MPI_Session late_session = MPI_SESSION_NULL;
MPI_Group late_group = MPI_GROUP_NULL;
MPI_Comm late_comm = MPI_COMM_NULL;
MPI_Info late_info = MPI_INFO_NULL;
MPI_Errhandler late_handler = MPI_ERRHANDLER_NULL;

void free_late() {
    if (late_comm != MPI_COMM_NULL) {
        MPI_Barrier(late_comm);
        MPI_Comm_free(&late_comm);
        MPI_Group_free(&late_group);
        MPI_Session_finalize(&late_session);
    }
    if (late_info != MPI_INFO_NULL) MPI_Info_free(&late_info);
    if (late_handler != MPI_ERRHANDLER_NULL) MPI_Errhandler_free(&late_handler);
}

// Objects that are not the program's to free, or that it has freed while something else keeps them.
void nothing_is_left() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_dup(info, &late_info);
    MPI_Info_free(&info);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    MPI_Comm_create_errhandler(told, &late_handler);
    MPI_Comm_create_errhandler(told, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Type_set_attr(MPI_INT, keyval, nullptr);
    MPI_Type_free_keyval(&keyval);
    MPI_Datatype real = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_real(6, MPI_UNDEFINED, &real);
    MPI_Type_contiguous(2, real, &made_type);
    int numbers_of[1];
    MPI_Aint none[1];
    MPI_Type_get_contents(made_type, 1, 0, 1, numbers_of, none, &real);
    MPI_Type_free(&made_type);
}

void open_late_session() {
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &late_session);
    MPI_Group_from_session_pset(late_session, "mpi://WORLD", &late_group);
    MPI_Comm_create_from_group(late_group, "late", MPI_INFO_NULL, MPI_ERRORS_RETURN, &late_comm);
}

// Two sessions, one after the other; what belongs to none lives through both.
void sessions_nothing() {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Session_create_errhandler(told, &handler);
    for (int i = 0; i < 2; i++) {
        MPI_Session_init(info, handler, &late_session);
        if (i == 0) MPI_Type_contiguous(3, MPI_INT, &made_type);
        MPI_Info used = MPI_INFO_NULL;
        MPI_Session_get_info(late_session, &used);
        MPI_Info_free(&used);
        if (i == 1) MPI_Type_free(&made_type);
        MPI_Session_finalize(&late_session);
    }
    MPI_Errhandler_free(&handler);
    late_info = info;
}

// All of it is right: nothing may be said.
void nothing() {
    nothing_is_left();
    // Of a request that has ended, its record serves another one: what it had is not under way.
    int own[2] = {1, 2}, got[2] = {0, 0};
    MPI_Request first = MPI_REQUEST_NULL, exchange = MPI_REQUEST_NULL;
    MPI_Irecv(got, 2, MPI_INT, 0, 60, MPI_COMM_SELF, &first);
    MPI_Send(own, 2, MPI_INT, 0, 60, MPI_COMM_SELF);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    int elsewhere[2] = {0, 0}, done = 0;
    MPI_Isendrecv(own, 2, MPI_INT, 0, 61, elsewhere, 2, MPI_INT, 0, 61, MPI_COMM_SELF, &exchange);
    while (!done) MPI_Request_get_status(exchange, &done, MPI_STATUS_IGNORE);
    MPI_Irecv(got, 2, MPI_INT, 0, 60, MPI_COMM_SELF, &first);
    MPI_Send(own, 2, MPI_INT, 0, 60, MPI_COMM_SELF);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    MPI_Wait(&exchange, MPI_STATUS_IGNORE);
    const int other = rank ^ 1;
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_at_end, &keyval, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, new int);
    MPI_Comm_free_keyval(&keyval);
    MPI_Type_contiguous(3, MPI_INT, &made_type);  // freed with the attribute

    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Datatype two = MPI_DATATYPE_NULL;
    MPI_Type_vector(10, 1, 10, MPI_INT, &column);
    MPI_Type_contiguous(2, column, &two);
    MPI_Type_commit(&column);
    MPI_Request all[4];
    MPI_Irecv(numbers, 1, column, other, 1, MPI_COMM_WORLD, &all[0]);
    MPI_Irecv(numbers + 1, 1, column, other, 2, MPI_COMM_WORLD, &all[1]);
    MPI_Isend(others, 10, MPI_INT, other, 1, MPI_COMM_WORLD, &all[2]);
    MPI_Isend(others, 10, MPI_INT, other, 2, MPI_COMM_WORLD, &all[3]);
    end_all(4, all);
    for (int i = 0; i < 5000; i++) {
        MPI_Irecv(numbers, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &all[0]);
        MPI_Isend(others, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &all[1]);
        end_all(2, all);
    }
    MPI_Type_free(&column);
    MPI_Type_free(&two);

    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group again = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &again);
    MPI_Group_free(&group);
    MPI_Group_free(&again);
    MPI_Comm_dup(MPI_COMM_WORLD, &made_comm);
    // As much of the same basic types, otherwise described.
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    rank == 0 ? MPI_Bcast(numbers, 4, MPI_INT, 0, made_comm) : MPI_Bcast(numbers, 2, pair, 0, made_comm);
    rank == 0 ? MPI_Bcast(numbers, 4, MPI_INT, 0, made_comm) : MPI_Bcast_c(numbers, 2, pair, 0, made_comm);
    rank == 0 ? MPI_Bcast(numbers, 4, MPI_INT, 0, made_comm) : MPI_Bcast(numbers, 16, MPI_BYTE, 0, made_comm);
    MPI_Type_free(&pair);
    // Other numbers of bytes for each, and in place.
    std::vector<int> counts;
    std::vector<int> places;
    for (int i = 0; i < size; i++) {
        counts.push_back(i + 1);
        places.push_back(10 * i);
    }
    MPI_Allgatherv(rank == 0 ? MPI_IN_PLACE : numbers, rank + 1, MPI_INT, others, counts.data(), places.data(), MPI_INT,
                   made_comm);
    MPI_Reduce_scatter(numbers, others, counts.data(), MPI_INT, MPI_SUM, made_comm);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : numbers, 2, MPI_INT, others, 2, MPI_INT, 0, made_comm);
    MPI_Request later = MPI_REQUEST_NULL;
    MPI_Iallreduce(numbers, others, 3, MPI_INT, MPI_MIN, made_comm, &later);
    MPI_Barrier(MPI_COMM_WORLD);  // between the start and the end of one on another communicator
    MPI_Wait(&later, MPI_STATUS_IGNORE);
    MPI_Bcast_init(reals, 3, MPI_FLOAT, 0, made_comm, MPI_INFO_NULL, &later);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&later);
        MPI_Wait(&later, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&later);
    MPI_Comm_free(&made_comm);
}

struct Fault {
    const char* name;
    void (*make)();
};
#define FAULT(name) {#name, name}
const Fault faults[] = {
    FAULT(kind), FAULT(root), FAULT(count), FAULT(type), FAULT(operation), FAULT(reduce_count), FAULT(gather_count),
    FAULT(gatherv_counts), FAULT(scatter_count), FAULT(allgather_count), FAULT(alltoallv_counts),
    FAULT(reduce_scatter_counts), FAULT(waiting_or_not), FAULT(later_root), FAULT(persistent_root),
    FAULT(second_call), FAULT(communicator), FAULT(making), FAULT(early_end), FAULT(part), FAULT(left_send),
    FAULT(left_receive), FAULT(left_persistent), FAULT(left_collective), FAULT(left_comm), FAULT(left_type),
    FAULT(left_group), FAULT(left_operation), FAULT(left_window), FAULT(left_file), FAULT(left_info),
    FAULT(left_errhandler), FAULT(left_keyval), FAULT(left_inner), FAULT(left_contents), FAULT(left_session),
    FAULT(left_message), FAULT(left_refused), FAULT(two_receives), FAULT(send_of_receive), FAULT(columns),
    FAULT(unreceived), FAULT(other_tag), FAULT(unreceived_of_freed), FAULT(open_late_session), FAULT(sessions_left),
    FAULT(sessions_nothing), FAULT(sessions_exit_beside), FAULT(sessions_exit_inside), FAULT(nothing),
};

}  // namespace

int main(int argc, char** argv) {
    const bool has_world = argc < 2 || std::strncmp(argv[1], "sessions", 8) != 0;
    if (has_world) {
        MPI_Init(&argc, &argv);
        rank = rank_in(MPI_COMM_WORLD);
        size = size_of(MPI_COMM_WORLD);
    }
    int found = 0;
    for (int i = 1; i < argc; i++)
        for (const Fault& one : faults)
            if (std::strcmp(argv[i], one.name) == 0) {
                one.make();
                found++;
            }
    if (found == 0 || found != argc - 1) {
        std::printf("usage: faults NAME...\n");
        if (has_world) MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    if (has_world) MPI_Finalize();
    free_late();
}
