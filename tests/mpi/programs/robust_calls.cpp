// SPDX-License-Identifier: BSD-2-Clause
// What each call of a job of four processes gives when one has died, by name; processes that are stopped, which are
// slow and not lost; one that becomes another program, which is lost; one that dies without a message to some of the
// others, where a communicator alone goes on; and processes whose main() ends by pthread_exit(), which end with their
// last thread.
// usage: robust_calls calls | executed | hint | main-ends | stopped [SECONDS]
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/programs/check.hpp"
#include "tests/eventually.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProcesses = 4;
constexpr int kVictim = 3;
constexpr int kLeft = kProcesses - 1;
constexpr const char* kOther = "--other";
constexpr std::chrono::seconds kSoon(20);  // and not when the other program ends
constexpr unsigned kLongest = 100;         // seconds until one that waits for ever ends

int rank;

// sleeps: for its callers
void pause_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

[[noreturn]] void die() {
    ::raise(SIGKILL);
    std::abort();
}

int failed_of(MPI_Comm comm) {
    MPI_Group failed = MPI_GROUP_NULL;
    int count = -1;
    EXPECT(MPIX_Comm_get_failed(comm, &failed) == MPI_SUCCESS);
    MPI_Group_size(failed, &count);
    MPI_Group_free(&failed);
    return count;
}

int receive_from(int source, int tag, MPI_Comm comm) {
    int word = -1;
    return MPI_Recv(&word, 1, MPI_INT, source, tag, comm, MPI_STATUS_IGNORE);
}

// For one that is about to stop or to end. That it has left a barrier does not mean that the others have: they may
// still need messages which it has not sent on. Once they have left, they say so.
void let_go(int which, MPI_Comm comm) {
    constexpr int kTag = 11;
    if (rank != which) {
        EXPECT(MPI_Send(&rank, 1, MPI_INT, which, kTag, comm) == MPI_SUCCESS);
        return;
    }
    for (int other = 0; other < kProcesses; other++)
        if (other != which) EXPECT(receive_from(other, kTag, comm) == MPI_SUCCESS);
}

// Bits that all have, whatever they acknowledge.
int agree(MPI_Comm comm) {
    int flags = 0xff ^ 1 << rank;
    const int error = MPIX_Comm_agree(comm, &flags);
    int all = 0xff;
    for (int other = 0; other < (failed_of(comm) == 0 ? kProcesses : kLeft); other++) all &= ~(1 << other);
    EXPECT(flags == all);
    return error;
}

void acknowledge(MPI_Comm comm) { EXPECT(MPIX_Comm_failure_ack(comm) == MPI_SUCCESS); }

// A receive that was posted before the death, one that comes later, one from anywhere; collective calls; those left.
void calls_after_a_death(MPI_Comm comm) {
    MPI_Request anywhere, untold;
    int word = -1, other = -1;
    EXPECT(agree(comm) == MPI_SUCCESS);
    EXPECT(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &anywhere) == MPI_SUCCESS);
    EXPECT(MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, &untold) == MPI_SUCCESS);
    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    let_go(kVictim, comm);
    if (rank == kVictim) {
        pause_for(100);  // sleeps: the others wait for this process first
        die();
    }
    EXPECT(receive_from(kVictim, 1, comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(receive_from(kVictim, 1, comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Wait(&anywhere, MPI_STATUS_IGNORE) == MPIX_ERR_PROC_FAILED_PENDING);
    EXPECT(anywhere != MPI_REQUEST_NULL);
    EXPECT(receive_from(MPI_ANY_SOURCE, 1, comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Barrier(comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(failed_of(comm) == 1);

    // An agreement succeeds when all have acknowledged.
    EXPECT(agree(comm) == MPIX_ERR_PROC_FAILED);
    if (rank != kLeft - 1) acknowledge(comm);
    EXPECT(agree(comm) == MPIX_ERR_PROC_FAILED);
    if (rank == kLeft - 1) acknowledge(comm);
    EXPECT(agree(comm) == MPI_SUCCESS);

    // Messages among those that are left go on; collective calls do not.
    EXPECT(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % kLeft, 5, comm) == MPI_SUCCESS);
    EXPECT(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % kLeft, 6, comm) == MPI_SUCCESS);
    // What ended because of the death, told or not, is told no more once it is acknowledged.
    MPI_Status status;
    EXPECT(MPI_Wait(&anywhere, &status) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == (rank + kLeft - 1) % kLeft && word == status.MPI_SOURCE);
    EXPECT(MPI_Wait(&untold, &status) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == (rank + kLeft - 1) % kLeft && other == status.MPI_SOURCE);
    EXPECT(MPI_Barrier(comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(agree(comm) == MPI_SUCCESS);  // all have come so far
}

// A revocation reaches those that wait, and one to whom nothing more can be sent at the moment.
void revocation(MPI_Comm comm) {
    constexpr int kMessages = 400, kBytes = 60000;
    if (rank == 0) {
        const std::vector<char> data(kBytes);
        std::vector<MPI_Request> sends(kMessages);
        for (MPI_Request& one : sends) MPI_Isend(data.data(), kBytes, MPI_CHAR, kLeft - 1, 7, comm, &one);
        EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
        MPI_Waitall(kMessages, sends.data(), MPI_STATUSES_IGNORE);
        return;
    }
    if (rank == kLeft - 1) pause_for(500);  // sleeps: this process is late
    EXPECT(receive_from(0, 9, comm) == MPIX_ERR_REVOKED);
}

void work_of_all(MPI_Comm comm, int processes) {
    int one = 1, sum = 0;
    EXPECT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(sum == processes);
}

MPI_Comm shrink(MPI_Comm comm) {
    MPI_Comm left = MPI_COMM_NULL;
    int size = 0;
    EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
    MPI_Comm_size(left, &size);
    EXPECT(size == kLeft);
    work_of_all(left, kLeft);
    return left;
}

MPI_Comm calls(MPI_Comm comm) {
    calls_after_a_death(comm);
    revocation(comm);
    return shrink(comm);
}

// Stops this process; a child that holds nothing of it lets it go on.
void stop_for(int seconds) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::close_range(0, ~0U, 0);
        ::sleep(unsigned(seconds));  // sleeps: the stop
        ::kill(::getppid(), SIGCONT);
        ::_exit(0);
    }
    ::raise(SIGSTOP);
    ::waitpid(child, nullptr, 0);
}

// All wait for the stopped one; then it is stopped while another one dies.
MPI_Comm stopped(MPI_Comm comm, int seconds) {
    constexpr int kStopped = 1;
    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    auto begun = Clock::now();
    let_go(kStopped, comm);
    if (rank == kStopped) stop_for(seconds);
    work_of_all(comm, kProcesses);
    EXPECT(Clock::now() - begun > std::chrono::seconds(seconds) / 2);
    EXPECT(failed_of(comm) == 0);

    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    begun = Clock::now();
    let_go(kVictim, comm);
    let_go(kStopped, comm);
    if (rank == kStopped) stop_for(seconds);
    if (rank == kVictim) {
        pause_for(500);  // sleeps: the others wait for this process first
        die();
    }
    const int error = receive_from(kVictim, 1, comm);
    EXPECT(error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED);
    EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
    MPI_Comm left = shrink(comm);
    EXPECT(Clock::now() - begun > std::chrono::seconds(seconds) / 2);
    EXPECT(failed_of(comm) == 1);
    return left;
}

bool is_other(int process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
    return std::string(std::istreambuf_iterator<char>(file), {}).find(kOther) != std::string::npos;
}

// A dynamic window, with a word of the victim attached and nothing read of its list yet. All may access it.
MPI_Win attached_word(MPI_Comm comm, MPI_Aint* address) {
    static long word = 0;
    MPI_Win window = MPI_WIN_NULL;
    EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window) == MPI_SUCCESS);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    if (rank == kVictim) {
        EXPECT(MPI_Win_attach(window, &word, sizeof word) == MPI_SUCCESS);
        MPI_Get_address(&word, address);
    }
    EXPECT(MPI_Bcast(address, 1, MPI_AINT, kVictim, comm) == MPI_SUCCESS);
    if (rank != kVictim) EXPECT(MPI_Win_lock_all(MPI_MODE_NOCHECK, window) == MPI_SUCCESS);
    return window;
}

// The first call after the change, so that the operation itself meets it.
void get_of_other(MPI_Win window, MPI_Aint address) {
    long word = 0;
    int code = MPI_Get(&word, 1, MPI_LONG, kVictim, address, 1, MPI_LONG, window);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(kVictim, window);
    EXPECT(code == MPIX_ERR_PROC_FAILED);
    (void)MPI_Win_unlock_all(window);
    (void)MPI_Win_free(&window);
}

// The process goes on as a program that knows nothing of the job, and is ended when all the others have been told.
MPI_Comm executed(MPI_Comm comm, const char* self) {
    int process = ::getpid();
    EXPECT(MPI_Bcast(&process, 1, MPI_INT, kVictim, comm) == MPI_SUCCESS);
    MPI_Aint address = 0;
    const MPI_Win window = attached_word(comm, &address);
    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    let_go(kVictim, comm);
    if (rank == kVictim) {
        ::execl(self, self, kOther, nullptr);
        ::_exit(3);
    }
    EXPECT(viaduct::tests::eventually("the other program", [&] { return is_other(process); }, {{process}}).holds);
    viaduct::tests::RunningTime<> time;
    get_of_other(window, address);
    EXPECT(receive_from(kVictim, 1, comm) == MPIX_ERR_PROC_FAILED);
    EXPECT(std::chrono::nanoseconds(time.running_ns()) <= kSoon);
    MPI_Comm left = shrink(comm);
    if (rank == 0) ::kill(process, SIGKILL);
    return left;
}

// By the info key, in a job that connects with the first message. Only rank 0 sends one to the process that dies.
MPI_Comm hinted() {
    constexpr int kTag = 12;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cmpi_robust", "true");
    EXPECT(MPI_Comm_set_info(MPI_COMM_WORLD, info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    if (rank == kVictim) {
        EXPECT(receive_from(0, kTag, MPI_COMM_WORLD) == MPI_SUCCESS);
        die();
    }
    for (int other = 1; rank == 0 && other < kLeft; other++)
        EXPECT(receive_from(other, kTag, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(MPI_Send(&rank, 1, MPI_INT, rank == 0 ? kVictim : 0, kTag, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(receive_from(kVictim, 1, MPI_COMM_WORLD) == MPIX_ERR_PROC_FAILED);
    MPI_Comm left;
    EXPECT(MPIX_Comm_shrink(MPI_COMM_WORLD, &left) == MPI_SUCCESS);
    return left;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "calls";
    while (what == kOther) ::pause();  // the alarm of the program before goes on
    const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
    MPI_Init(&argc, &argv);
    ::alarm(kLongest);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (what == "main-ends") {
        work_of_all(MPI_COMM_WORLD, kProcesses);
        ::pthread_exit(nullptr);
    }
    MPI_Comm comm;
    EXPECT(MPI_Comm_dup(what == "hint" ? MPI_COMM_SELF : MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    MPI_Comm left = what == "stopped"    ? stopped(comm, seconds)
                    : what == "hint"     ? hinted()
                    : what == "executed" ? executed(comm, argv[0])
                                         : calls(comm);
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, left);
    if (rank == 0 && all == 0) std::puts("No Errors");
    MPI_Comm_free(&left);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return all != 0;
}
