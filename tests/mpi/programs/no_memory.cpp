// SPDX-License-Identifier: BSD-2-Clause
// No call of MPI lets an exception out, and none ends the process by a signal. Each call of a list is made again and
// again while the first allocation in it fails, then the second, and so on until none fails any more. Each call has a
// process of its own, which may end by itself with a message where the library cannot go on, and this one waits for it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "check.hpp"
#include "tests/failing_new.hpp"
#include "time_limit.hpp"

namespace {

constexpr unsigned kMostSeconds = 60;
constexpr int kMostFailures = 2000;  // no call allocates as often

int in[64], out[64];
const int ones[1] = {1}, zeros[1] = {0};

// Waits for what has been started, when it has.
int ended(int code, MPI_Request request) {
    if (code != MPI_SUCCESS) return code;
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// What has been made is taken by reference: the arguments of a call are evaluated in any order.
int of_comm(int code, MPI_Comm& made) { return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code; }

int of_type(int code, MPI_Datatype& made) { return code == MPI_SUCCESS ? MPI_Type_free(&made) : code; }

int send_to_myself() {
    MPI_Request request;
    const int code = MPI_Irecv(in, 4, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    if (code != MPI_SUCCESS) return code;
    const int sent = MPI_Send(out, 4, MPI_INT, 0, 1, MPI_COMM_SELF);
    if (sent != MPI_SUCCESS) {  // nothing will come
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return sent;
    }
    return ended(code, request);
}

int send_before_receive() {
    const int code = MPI_Bsend(out, 4, MPI_INT, 0, 2, MPI_COMM_SELF);
    return code != MPI_SUCCESS ? code : MPI_Recv(in, 4, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

int persistent() {
    MPI_Request request;
    int code = MPI_Allreduce_init(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
}

int partitioned() {
    MPI_Request request;
    const int code = MPI_Psend_init(out, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    return code == MPI_SUCCESS ? MPI_Request_free(&request) : code;
}

int info() {
    MPI_Info made;
    int code = MPI_Info_create(&made);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Info_set(made, "a key that is longer than what fits a short string", "and a value that is longer, too");
    MPI_Info_free(&made);
    return code;
}

int groups() {
    MPI_Group world, made;
    int code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Group_incl(world, 1, zeros, &made);
    if (code == MPI_SUCCESS) MPI_Group_free(&made);
    MPI_Group_free(&world);
    return code;
}

int attributes() {
    int key = MPI_KEYVAL_INVALID;
    int code = MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_set_attr(MPI_COMM_SELF, key, in);
    if (code == MPI_SUCCESS) MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
    return code;
}

int window() {
    MPI_Win made;
    int code = MPI_Win_create(in, sizeof in, 4, MPI_INFO_NULL, MPI_COMM_SELF, &made);
    if (code != MPI_SUCCESS) return code;
    MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN);
    if ((code = MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made)) == MPI_SUCCESS) {
        code = MPI_Put(out, 1, MPI_INT, 0, 0, 1, MPI_INT, made);
        const int added = MPI_Accumulate(out, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, made);
        const int unlocked = MPI_Win_unlock(0, made);
        code = code != MPI_SUCCESS ? code : added != MPI_SUCCESS ? added : unlocked;
    }
    return code != MPI_SUCCESS ? code : MPI_Win_free(&made);
}

int file() {
    MPI_File made;
    int code = MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &made);
    if (code != MPI_SUCCESS) return code;
    code = MPI_File_write_at(made, 0, out, 4, MPI_INT, MPI_STATUS_IGNORE);
    const int closed = MPI_File_close(&made);
    return code != MPI_SUCCESS ? code : closed;
}

int session() {
    MPI_Session made;
    int code = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    if (code != MPI_SUCCESS) return code;
    MPI_Group group;
    MPI_Comm comm;
    code = MPI_Group_from_session_pset(made, "mpi://SELF", &group);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        if (code == MPI_SUCCESS) MPI_Comm_free(&comm);
        MPI_Group_free(&group);
    }
    MPI_Session_finalize(&made);
    return code;
}

void look_away(MPI_Comm*, int*, ...) {}

int error_texts() {
    int made = 0;
    const int code = MPI_Add_error_class(&made);
    return code != MPI_SUCCESS ? code
                               : MPI_Add_error_string(made, "a text that is longer than what fits a short string");
}

struct Named {
    const char* name;
    int (*call)();
};

MPI_Comm comm = MPI_COMM_NULL;
MPI_Datatype type = MPI_DATATYPE_NULL;
MPI_Request request = MPI_REQUEST_NULL;

const Named kCalls[] = {
    {"Comm_dup", [] { return of_comm(MPI_Comm_dup(MPI_COMM_WORLD, &comm), comm); }},
    {"Comm_idup",
     [] {
         const int code = ended(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), request);
         return of_comm(code, comm);
     }},
    {"Comm_split", [] { return of_comm(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm), comm); }},
    {"Cart_create", [] { return of_comm(MPI_Cart_create(MPI_COMM_WORLD, 1, ones, zeros, 0, &comm), comm); }},
    {"Dist_graph_create",
     [] {
         return of_comm(
             MPI_Dist_graph_create(MPI_COMM_WORLD, 1, zeros, ones, zeros, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
             comm);
     }},
    {"Type_vector", [] { return of_type(MPI_Type_vector(3, 2, 5, MPI_INT, &type), type); }},
    {"Type_create_struct",
     [] {
         const int blocks[2] = {1, 2};
         const MPI_Aint places[2] = {0, 16};
         const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
         return of_type(MPI_Type_create_struct(2, blocks, places, types, &type), type);
     }},
    {"Type_set_name",
     [] { return MPI_Comm_set_name(MPI_COMM_WORLD, "a name that is longer than a short string has room for"); }},
    {"Op_create",
     [] {
         MPI_Op op;
         const int code = MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
         return code == MPI_SUCCESS ? MPI_Op_free(&op) : code;
     }},
    {"Errhandler_create",
     [] {
         MPI_Errhandler made;
         const int code = MPI_Comm_create_errhandler(look_away, &made);
         return code == MPI_SUCCESS ? MPI_Errhandler_free(&made) : code;
     }},
    {"Irecv", send_to_myself},
    {"Bsend", send_before_receive},
    {"Sendrecv_replace",
     [] { return MPI_Sendrecv_replace(in, 4, MPI_INT, 0, 3, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE); }},
    {"Isendrecv",
     [] {
         return ended(MPI_Isendrecv(out, 4, MPI_INT, 0, 4, in, 4, MPI_INT, 0, 4, MPI_COMM_SELF, &request), request);
     }},
    {"Barrier", [] { return MPI_Barrier(MPI_COMM_WORLD); }},
    {"Reduce", [] { return MPI_Reduce(out, in, 64, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }},
    {"Ialltoallw",
     [] {
         const MPI_Datatype types[1] = {MPI_INT};
         return ended(MPI_Ialltoallw(out, ones, zeros, types, in, ones, zeros, types, MPI_COMM_WORLD, &request),
                      request);
     }},
    {"Reduce_scatter_block", [] { return MPI_Reduce_scatter_block(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }},
    {"Iexscan", [] { return ended(MPI_Iexscan(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request), request); }},
    {"Allreduce_init", persistent},
    {"Psend_init", partitioned},
    {"Info_set", info},
    {"Group_incl", groups},
    {"Comm_set_attr", attributes},
    {"Win_create", window},
    {"File_open", file},
    {"Session_init", session},
    {"Add_error_string", error_texts},
};
constexpr int kNumber = int(sizeof kCalls / sizeof *kCalls);

// Whether the error is one that a program can understand.
bool is_told(int code) {
    int error_class = MPI_SUCCESS;
    return MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class != MPI_ERR_UNKNOWN;
}

int try_call(const Named& one) {
    time_limit::begin(kMostSeconds);
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    static char room[1 << 14];
    MPI_Buffer_attach(room, sizeof room);
    int failures = 0;
    for (bool some_left = true; some_left && failures < kMostFailures; ++failures) {
        fail_allocation_after(failures);
        const int code = one.call();
        some_left = allocation_has_failed();
        if (code != MPI_SUCCESS && !is_told(code)) return 2;
        if (code != MPI_SUCCESS && !some_left) {
            std::printf("%s: error %d after %d allocations, none of which has failed\n", one.name, code, failures);
            std::fflush(stdout);
            _exit(3);
        }
    }
    std::printf("%s: %d allocations\n", one.name, failures - 1);
    std::fflush(stdout);
    _exit(failures < kMostFailures ? 0 : 4);  // what has failed may have left something open
}

bool survives(const char* program, int which) {
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string number = std::to_string(which);
        ::execl(program, "no_memory", number.c_str(), nullptr);
        _exit(5);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == MPI_ERR_NO_MEM)) return true;
    std::printf("%s: status %#x\n", kCalls[which].name, unsigned(status));
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) return try_call(kCalls[std::atoi(argv[1])]);
    int wrong_calls = 0;
    for (int which = 0; which < kNumber; ++which) wrong_calls += survives("/proc/self/exe", which) ? 0 : 1;
    if (wrong_calls == 0) std::puts("No Errors");
    return wrong_calls != 0;
}
