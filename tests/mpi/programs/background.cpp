// SPDX-License-Identifier: BSD-2-Clause
// A thread that waits makes progress for the whole process: while the others compute and call nothing, and
// while they poll. Two processes; should either not be so, the test ends by its time limit.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kLong = 1 << 20;  // goes by request and reply: the sender has to take part
constexpr int kRounds = 10, kPolls = 500;
enum Tag { kData = 1, kSmall, kEnd };

int rank;

// Waits for the last message of the other process; true from then on.
class Waiter {
public:
    Waiter()
        : thread_([this] {
              int none = 0;
              MPI_Recv(&none, 1, MPI_INT, 1 - rank, kEnd, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
              over_ = true;
          }) {}
    ~Waiter() { thread_.join(); }
    bool over() const { return over_; }

private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

void say_end() { MPI_Send(&rank, 1, MPI_INT, 1 - rank, kEnd, MPI_COMM_WORLD); }

bool holds(const std::vector<char>& bytes, int value) {
    for (const char byte : bytes)
        if (byte != char(value)) return false;
    return true;
}

// Rank 0 has begun a long send and a long receive, and computes: rank 1 gets all of it, and gets rid of all
// of it.
void beside_one_who_computes(int round) {
    std::vector<char> out(kLong, char(round + rank)), in(kLong, char(0x55));
    if (rank == 1) {
        MPI_Recv(in.data(), kLong, MPI_CHAR, 0, kData, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(holds(in, round));
        MPI_Ssend(out.data(), kLong, MPI_CHAR, 0, kData, MPI_COMM_WORLD);
        return say_end();
    }
    MPI_Request both[2];
    {
        const Waiter waiter;
        MPI_Irecv(in.data(), kLong, MPI_CHAR, 1, kData, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out.data(), kLong, MPI_CHAR, 1, kData, MPI_COMM_WORLD, &both[1]);
        while (!waiter.over()) {
        }
    }
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    EXPECT(holds(in, round + 1));
}

// Both poll for short messages while a thread of each waits for another one.
void beside_one_who_polls() {
    const Waiter waiter;
    for (int i = 0; i < kPolls; i++) {
        int got = -1, done = 0;
        MPI_Request request;
        MPI_Irecv(&got, 1, MPI_INT, 1 - rank, kSmall, MPI_COMM_WORLD, &request);
        MPI_Send(&i, 1, MPI_INT, 1 - rank, kSmall, MPI_COMM_WORLD);
        while (done == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        EXPECT(got == i);
        EXPECT(!waiter.over());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    say_end();
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0, size = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(provided == MPI_THREAD_MULTIPLE && size == 2);
    for (int round = 0; round < kRounds; round++) beside_one_who_computes(round);
    beside_one_who_polls();
    return report();
}
