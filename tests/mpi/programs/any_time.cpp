// SPDX-License-Identifier: BSD-2-Clause
// Threads make the calls that MPI allows at any time (MPI 4.1, 11.4.1 and 11.6.2): before MPI_Init, during it, while
// the main thread communicates at MPI_THREAD_FUNNELED, and after MPI_Finalize. Each thread looks at its own objects.
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define EXPECT(condition) expect(condition, #condition, __LINE__)

namespace {

constexpr int kThreads = 4;
constexpr int kRoundsInEachPhase = 200;

std::atomic<int> wrong{0};
std::atomic<bool> over{false};
std::array<std::atomic<int>, kThreads> rounds;

void expect(bool holds, const char* condition, int line) {
    if (!holds && ++wrong <= 5) std::printf("line %d: %s\n", line, condition);
}

void use_infos(const std::string& own) {
    MPI_Info info = MPI_INFO_NULL, copy = MPI_INFO_NULL, environment = MPI_INFO_NULL;
    EXPECT(MPI_Info_create(&info) == MPI_SUCCESS);
    EXPECT(MPI_Info_set(info, "own", own.c_str()) == MPI_SUCCESS);
    EXPECT(MPI_Info_dup(info, &copy) == MPI_SUCCESS);
    EXPECT(copy != info);
    char value[64] = "";
    int length = sizeof value, flag = 0, keys = 0;
    EXPECT(MPI_Info_get_string(copy, "own", &length, value, &flag) == MPI_SUCCESS && flag == 1);
    EXPECT(own == value);
    EXPECT(MPI_Info_get_nkeys(info, &keys) == MPI_SUCCESS && keys == 1);
    EXPECT(MPI_Info_delete(info, "own") == MPI_SUCCESS);
    EXPECT(MPI_Info_free(&info) == MPI_SUCCESS);
    EXPECT(MPI_Info_free(&copy) == MPI_SUCCESS);
    EXPECT(MPI_Info_create_env(0, nullptr, &environment) == MPI_SUCCESS);
    EXPECT(MPI_Info_free(&environment) == MPI_SUCCESS);
}

void use_error_codes(const std::string& own) {
    int made_class = 0, code = 0, found = 0, length = 0;
    EXPECT(MPI_Add_error_class(&made_class) == MPI_SUCCESS);
    EXPECT(MPI_Add_error_code(made_class, &code) == MPI_SUCCESS);
    EXPECT(MPI_Add_error_string(code, own.c_str()) == MPI_SUCCESS);
    EXPECT(MPI_Error_class(code, &found) == MPI_SUCCESS && found == made_class);
    char text[MPI_MAX_ERROR_STRING];
    EXPECT(MPI_Error_string(code, text, &length) == MPI_SUCCESS);
    EXPECT(own == text);
    EXPECT(MPIX_Delete_error_code(code) == MPI_SUCCESS);
    EXPECT(MPIX_Delete_error_class(made_class) == MPI_SUCCESS);
}

void handle(MPI_Session*, int*, ...) {}

void use_error_handlers() {
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    EXPECT(MPI_Session_create_errhandler(handle, &made) == MPI_SUCCESS);
    EXPECT(MPI_Errhandler_free(&made) == MPI_SUCCESS);
    EXPECT(made == MPI_ERRHANDLER_NULL);
}

void ask() {
    int flag = 0, version = 0, subversion = 0, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS);
    EXPECT(MPI_Finalized(&flag) == MPI_SUCCESS);
    EXPECT(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version >= 3);
    EXPECT(MPI_Get_library_version(text, &length) == MPI_SUCCESS && length > 0);
}

void run(int thread) {
    while (!over) {
        const std::string own = "thread " + std::to_string(thread) + " round " + std::to_string(rounds[size_t(thread)]);
        use_infos(own);
        use_error_codes(own);
        use_error_handlers();
        ask();
        ++rounds[size_t(thread)];
    }
}

// Until each thread has made so many rounds more.
void let_threads_run() {
    for (std::atomic<int>& one : rounds)
        for (const int end = one + kRoundsInEachPhase; one < end;) std::this_thread::yield();
}

// The main thread's use of the same tables.
void communicate() {
    for (int i = 0; i < kRoundsInEachPhase; ++i) {
        MPI_Errhandler made = MPI_ERRHANDLER_NULL;
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Info hints = MPI_INFO_NULL;
        EXPECT(MPI_Comm_create_errhandler(handle, &made) == MPI_SUCCESS);
        EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
        EXPECT(MPI_Comm_set_errhandler(comm, made) == MPI_SUCCESS);
        EXPECT(MPI_Comm_get_info(comm, &hints) == MPI_SUCCESS);
        EXPECT(MPI_Info_free(&hints) == MPI_SUCCESS);
        EXPECT(MPI_Errhandler_free(&made) == MPI_SUCCESS);
        EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
        EXPECT(MPI_Comm_free(&comm) == MPI_SUCCESS);
    }
}

// Each thread opens and closes sessions of its own; all threads see one job.
void open_sessions() {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([] {
            for (int i = 0; i < kRoundsInEachPhase; ++i) {
                MPI_Session session = MPI_SESSION_NULL;
                MPI_Errhandler made = MPI_ERRHANDLER_NULL;
                int sets = 0;
                EXPECT(MPI_Session_create_errhandler(handle, &made) == MPI_SUCCESS);
                EXPECT(MPI_Session_init(MPI_INFO_NULL, made, &session) == MPI_SUCCESS);
                EXPECT(MPI_Errhandler_free(&made) == MPI_SUCCESS);
                EXPECT(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets) == MPI_SUCCESS && sets >= 2);
                EXPECT(MPI_Session_finalize(&session) == MPI_SUCCESS);
            }
        });
    }
    for (std::thread& one : threads) one.join();
}

}  // namespace

int main(int argc, char** argv) {
    const bool with_sessions = argc > 1 && std::strcmp(argv[1], "sessions") == 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(run, thread);
    let_threads_run();
    if (with_sessions) {
        open_sessions();
    } else {
        int provided = 0;
        EXPECT(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS);
        let_threads_run();
        communicate();
        EXPECT(MPI_Finalize() == MPI_SUCCESS);
    }
    let_threads_run();
    over = true;
    for (std::thread& one : threads) one.join();
    if (wrong == 0) std::puts("No Errors");
    return wrong != 0;
}
