// SPDX-License-Identifier: BSD-2-Clause
// MPIX_Comm_revoke and MPIX_Comm_iagree in a job of three while each of rank 0's allocations fails in turn. What lacks
// memory is called again, and then it does all of its work: the others' receives end, and the agreement is the same.
#include <unistd.h>

#include <atomic>
#include <new>
#include <vector>

#include "check.hpp"
#include "tests/eventually.hpp"
#include "tests/failing_new.hpp"
#include "time_limit.hpp"

namespace {

constexpr unsigned kMostSeconds = 40;
constexpr int kRanks = 3;
constexpr int kMostFailures = 200;  // neither call allocates as often
constexpr int kLooks = 1000;        // in which a vote that has been sent is taken in
constexpr int kMessages = 600;      // more than a module takes in for a process that makes no call

// In memory of the whole job.
struct Words {
    std::atomic<int> released{0};  // the rounds whose messages may be taken in
    std::atomic<int> votes{0};     // of ranks other than 0, where rank 0 is late
};
Words* words = nullptr;

void make_words(MPI_Win* window) {
    void* base = nullptr;
    MPI_Win_allocate_shared(rank_in(MPI_COMM_WORLD) == 0 ? sizeof *words : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &base, window);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(*window, 0, &size, &unit, &base);
    words = static_cast<Words*>(base);
    if (rank_in(MPI_COMM_WORLD) == 0) new (words) Words;
    MPI_Barrier(MPI_COMM_WORLD);
}

// The call of rank 0 with one allocation that fails, and again. Whether one has failed.
template <typename Call>
bool call_twice(int succeed_before, Call&& call) {
    fail_allocation_after(succeed_before);
    const int code = call();
    const bool has_failed = allocation_has_failed();
    EXPECT(code == MPI_SUCCESS || (has_failed && code == MPI_ERR_NO_MEM));
    if (code != MPI_SUCCESS) EXPECT(call() == MPI_SUCCESS);
    return has_failed;
}

// The others make no call until it is revoked, so that what is sent to them waits in queues.
void revoke_behind_messages(int round, int* some_left) {
    MPI_Comm way, revoked;
    MPI_Comm_dup(MPI_COMM_WORLD, &way);
    MPI_Comm_dup(MPI_COMM_WORLD, &revoked);
    MPI_Comm_set_errhandler(revoked, MPI_ERRORS_RETURN);
    const int rank = rank_in(MPI_COMM_WORLD);
    int data = 0;
    if (rank == 0) {
        std::vector<MPI_Request> sends;
        for (int i = 0; i < kMessages; ++i)
            for (int to = 1; to < kRanks; ++to)
                MPI_Isend(&data, 1, MPI_INT, to, 0, way, &sends.emplace_back(MPI_REQUEST_NULL));
        *some_left = call_twice(round, [&] { return MPIX_Comm_revoke(revoked); });
        words->released.store(round + 1);
        MPI_Waitall(int(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
    } else {
        MPI_Request receive;
        MPI_Irecv(&data, 1, MPI_INT, 0, 0, revoked, &receive);
        EXPECT(viaduct::tests::eventually("rank 0 has sent", [&] { return words->released.load() > round; }).holds);
        int code = MPI_Wait(&receive, MPI_STATUS_IGNORE), error_class = MPI_SUCCESS;
        MPI_Error_class(code, &error_class);
        EXPECT(error_class == MPIX_ERR_REVOKED);
        for (int i = 0; i < kMessages; ++i) MPI_Recv(&data, 1, MPI_INT, 0, 0, way, MPI_STATUS_IGNORE);
    }
    int is_revoked = 0;
    MPIX_Comm_is_revoked(revoked, &is_revoked);
    EXPECT(is_revoked == 1);
    MPI_Comm_free(&revoked);
    MPI_Comm_free(&way);
}

// The beginning of an agreement: messages that come meanwhile end the job when there is no memory for them. Rank 0
// leads where the members are in the order of the world, and votes where they are in the other order. With Late it
// begins after the other members have voted, so that its first pass decides.
template <bool Leads, bool Late = false>
void agree(int round, int* some_left) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, Leads ? 0 : -rank_in(MPI_COMM_WORLD), &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int flag = 0xF0 | 1 << rank_in(comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto call = [&] { return MPIX_Comm_iagree(comm, &flag, &request); };
    if (rank_in(MPI_COMM_WORLD) == 0) {
        if (Late) {
            const int votes = (kRanks - 1) * (round + 1);
            EXPECT(viaduct::tests::eventually("the others vote", [&] { return words->votes.load() >= votes; }).holds);
            int there = 0;
            for (int i = 0; i < kLooks; ++i) MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &there, MPI_STATUS_IGNORE);
        }
        *some_left = call_twice(round, call);
    } else {
        EXPECT(call() == MPI_SUCCESS);
        if (Late) ++words->votes;
    }
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    EXPECT(flag == 0xF0);
    MPI_Comm_free(&comm);
}

void fail_each_in(const char* name, void (*part)(int, int*)) {
    int some_left = 1, round = 0;
    for (; some_left != 0 && round < kMostFailures; ++round) {
        part(round, &some_left);
        MPI_Bcast(&some_left, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    EXPECT(round > 1 && round < kMostFailures);
    if (rank_in(MPI_COMM_WORLD) == 0) std::printf("%s: %d allocations\n", name, round - 1);
}

}  // namespace

int main() {
    time_limit::begin(kMostSeconds);
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT(size_of(MPI_COMM_WORLD) == kRanks);
    MPI_Win window;
    make_words(&window);
    fail_each_in("revoke", revoke_behind_messages);
    fail_each_in("agree, as the leader", agree<true>);
    fail_each_in("agree, as the leader that is late", agree<true, true>);
    fail_each_in("agree, as another member", agree<false>);
    MPI_Win_free(&window);
    return report();
}
