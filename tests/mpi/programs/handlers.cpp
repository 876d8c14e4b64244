// SPDX-License-Identifier: BSD-2-Clause
// Among threads an error handler runs for one error at a time, also for those that are found before anything
// else is looked at: a null pointer where an answer should go. A communicator for which none was set has that of
// MPI_COMM_WORLD. Errors without an object go to the handler of MPI_COMM_SELF, and to that of MPI_COMM_WORLD where the
// program has set that one alone.
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

std::atomic<int> inside{0}, overlaps{0}, calls{0};

void handler(MPI_Comm*, int*, ...) {
    ++calls;
    if (++inside != 1) ++overlaps;
    ::usleep(1000);  // sleeps: handlers of other threads would begin
    --inside;
}

int calls_on_self = 0;
void alone_on_self(MPI_Comm* comm, int*, ...) { calls_on_self += *comm == MPI_COMM_SELF ? 1 : 100; }

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE);
    MPI_Errhandler made;
    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm early, own;
    MPI_Comm_dup(MPI_COMM_WORLD, &early);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, made);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, made);

    int word = 0;
    MPI_Status status{};
    const std::vector<std::function<int()>> mistakes = {
        [] { return MPI_Initialized(nullptr); },
        [] { return MPI_Finalized(nullptr); },
        [] { return MPI_Query_thread(nullptr); },
        [] { return MPI_Is_thread_main(nullptr); },
        [&] { return MPI_Get_processor_name(nullptr, &word); },
        [] { return MPI_Init(nullptr, nullptr); },
        [&] { return MPI_Test_cancelled(&status, nullptr); },
        [] { return MPI_Status_set_cancelled(nullptr, 1); },
        [] { return MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, nullptr); },
    };
    for (const auto& mistake : mistakes) {
        const int before = calls;
        std::thread other([&] {
            for (int i = 0; i < 5; i++) mistake();
        });
        for (int i = 0; i < 5; i++) mistake();
        other.join();
        EXPECT(calls == before + 10);
        EXPECT(overlaps == 0);
    }

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm dup_of_early;
    MPI_Comm_dup(early, &dup_of_early);
    const int before = calls;
    for (MPI_Comm comm : {early, dup_of_early, MPI_COMM_SELF})
        EXPECT(MPI_Send(&word, 1, MPI_INT, 77, 0, comm) == MPI_ERR_RANK);
    EXPECT(calls == before);
    MPI_Send(&word, 1, MPI_INT, 77, 0, own);
    EXPECT(calls == before + 1);
    MPI_Errhandler shown;
    MPI_Comm_get_errhandler(early, &shown);
    EXPECT(shown == MPI_ERRORS_ARE_FATAL);

    MPI_Errhandler alone;
    MPI_Comm_create_errhandler(alone_on_self, &alone);
    const auto mistake_without_object = [&word] { return MPI_Comm_size(MPI_COMM_NULL, &word); };
    EXPECT(mistake_without_object() == MPI_ERR_COMM);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, alone);
    for (const MPI_Errhandler of_world : {MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL, made}) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
        const int on_self = calls_on_self;
        mistake_without_object();
        EXPECT(calls_on_self == on_self + 1 && calls == before + 1);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    mistake_without_object();
    EXPECT(calls == before + 2);
    MPI_Errhandler_free(&alone);

    for (MPI_Comm* comm : {&early, &own, &dup_of_early}) MPI_Comm_free(comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&made);
    return report();
}
