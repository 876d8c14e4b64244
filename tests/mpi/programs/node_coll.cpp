// SPDX-License-Identifier: BSD-2-Clause
// Collective calls through memory of the node: the same bits as by messages, in any group of ranks; errors, orders and
// mixtures of calls; memory that is limited and given back; and members that die inside.
// usage: node_coll on | off | many | death
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "../../eventually.hpp"
#include "check.hpp"

namespace {

constexpr int kCallsBefore = 16;
bool on;

// How many communicators of this process have such memory.
int memories() {
    std::ifstream maps("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find("cmpi-coll") != std::string::npos ? 1 : 0;
    return found;
}

void warm_up(MPI_Comm comm) {
    for (int call = 0; call < kCallsBefore; ++call) EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
}

// Sums that depend on their order.
std::vector<double> contribution(int rank, size_t n) {
    std::vector<double> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = 1.0 / double(3 + rank * 7 + int(i % 1000)) * (rank % 2 ? 1e9 : 1e-3);
    return values;
}

void same_bits(MPI_Comm parent, size_t n, int root) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(parent, &comm);
    const int before = memories();
    const std::vector<double> mine = contribution(rank_in(comm), n);
    std::vector<double> all[2], one[2];
    for (int way = 0; way < 2; ++way) {
        all[way].resize(n, -1.0);
        one[way].resize(n, -1.0);
        MPI_Allreduce(mine.data(), all[way].data(), int(n), MPI_DOUBLE, MPI_SUM, comm);
        std::vector<double> in_place = mine;
        MPI_Allreduce(MPI_IN_PLACE, in_place.data(), int(n), MPI_DOUBLE, MPI_SUM, comm);
        EXPECT(in_place == all[way]);
        if (rank_in(comm) == root && way == 1) {
            one[way] = mine;
            MPI_Reduce(MPI_IN_PLACE, one[way].data(), int(n), MPI_DOUBLE, MPI_SUM, root, comm);
        } else {
            MPI_Reduce(mine.data(), one[way].data(), int(n), MPI_DOUBLE, MPI_SUM, root, comm);
        }
        if (way == 0) EXPECT(memories() == before);
        warm_up(comm);
    }
    EXPECT(memories() == before + (on && size_of(comm) > 1 ? 1 : 0));
    EXPECT(std::memcmp(all[0].data(), all[1].data(), n * sizeof(double)) == 0);
    EXPECT(std::memcmp(one[0].data(), one[1].data(), n * sizeof(double)) == 0);
    MPI_Comm_free(&comm);
    EXPECT(memories() == before);
}

// All kinds of calls, blocking and not, in one order; more broadcasts in a row than there are buffers.
void mixture(MPI_Comm comm, int bytes) {
    const int rank = rank_in(comm), size = size_of(comm);
    const auto n = size_t(bytes);
    const auto value = [&](int from, int turn, size_t i) { return char(from * 31 + turn * 7 + int(i % 101)); };
    for (int turn = 0; turn < 40; ++turn) {
        const int root = turn / 11 % size;
        std::vector<char> data(n, -1), shares(n * size_t(size), -1), given(n * size_t(size));
        for (size_t i = 0; i < n; ++i)
            if (rank == root) data[i] = value(root, turn, i);
        MPI_Bcast(data.data(), bytes, MPI_CHAR, root, comm);
        bool good = true;
        for (size_t i = 0; i < n; ++i) good &= data[i] == value(root, turn, i);
        EXPECT(good);
        if (turn % 11 != 0) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        int one = 1, sum = 0;
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        for (int to = 0; to < size; ++to)
            for (size_t i = 0; i < n; ++i) given[size_t(to) * n + i] = value(rank + to, turn, i);
        MPI_Alltoall(given.data(), bytes, MPI_CHAR, shares.data(), bytes, MPI_CHAR, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(sum == size);
        const auto shares_hold = [&](int moved, bool mine) {
            bool all = true;
            for (int from = 0; from < size; ++from)
                for (size_t i = 0; i < n; ++i)
                    all &= shares[size_t(from) * n + i] == value(from + (mine ? rank : moved), turn, i);
            return all;
        };
        EXPECT(shares_hold(0, true));
        std::fill(shares.begin(), shares.end(), char(-1));
        MPI_Allgather(given.data(), bytes, MPI_CHAR, shares.data(), bytes, MPI_CHAR, comm);
        EXPECT(shares_hold(0, false));
        std::fill(shares.begin(), shares.end(), char(-1));
        MPI_Gather(given.data() + n * size_t(size - 1), bytes, MPI_CHAR, shares.data(), bytes, MPI_CHAR, root, comm);
        EXPECT(rank != root || shares_hold(size - 1, false));
        std::fill(data.begin(), data.end(), char(-1));
        MPI_Scatter(given.data(), bytes, MPI_CHAR, data.data(), bytes, MPI_CHAR, root, comm);
        good = true;
        for (size_t i = 0; i < n; ++i) good &= data[i] == value(root + rank, turn, i);
        EXPECT(good);
    }
}

// Every other item, in and out.
void with_gaps(MPI_Comm comm, int count) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    const int rank = rank_in(comm), size = size_of(comm);
    std::vector<int> data(size_t(2 * count), -1), all(size_t(2 * count * size), -1);
    for (int i = 0; i < count; ++i)
        if (rank == 0) data[size_t(2 * i)] = i;
    MPI_Bcast(data.data(), count, type, 0, comm);
    bool good = true;
    for (int i = 0; i < count; ++i) good &= data[size_t(2 * i)] == i && data[size_t(2 * i + 1)] == -1;
    EXPECT(good);
    MPI_Allgather(data.data(), count, type, all.data(), count, type, comm);
    for (int i = 0; i < count * size; ++i) good &= all[size_t(2 * i)] == i % count && all[size_t(2 * i + 1)] == -1;
    EXPECT(good);
    MPI_Type_free(&type);
}

// A broadcast that is longer or shorter than the root's is an error, and the next call goes on.
void wrong_lengths(MPI_Comm comm) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    std::vector<char> data(300'000, char(rank_in(comm)));
    for (const int bytes : {8, 1000, 5000, 200'000}) {
        const bool root = rank_in(comm) == 0;
        int error = MPI_Bcast(data.data(), root ? bytes + 1 : bytes, MPI_CHAR, 0, comm);
        MPI_Error_class(error, &error);
        EXPECT(root ? error == MPI_SUCCESS : error == MPI_ERR_TRUNCATE);
        error = MPI_Bcast(data.data(), root ? bytes : bytes + 1, MPI_CHAR, 0, comm);
        EXPECT(root ? error == MPI_SUCCESS : error != MPI_SUCCESS);
        int sum = 1;
        EXPECT(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size_of(comm));
    }
}

void right_results() {
    const int rank = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    MPI_Comm halves = MPI_COMM_NULL, reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    for (MPI_Comm comm : {MPI_COMM_WORLD, halves, reversed})
        for (const size_t n : {1, 33, 254, 700, 4096, 9000, 20'000, 140'000})
            same_bits(comm, n, int(n) % size_of(comm));
    for (MPI_Comm comm : {halves, reversed}) {
        warm_up(comm);
        for (const int bytes : {1, 8, 3000, 20'000, 70'000}) mixture(comm, bytes);
        for (const int count : {1, 1000, 40'000}) with_gaps(comm, count);
        wrong_lengths(comm);
        MPI_Comm_free(&comm);
    }
    warm_up(MPI_COMM_WORLD);
    EXPECT(memories() == (on && size > 1 ? 1 : 0));  // that of MPI_COMM_WORLD
}

// More communicators than there is memory for: those that have none use messages.
void many() {
    constexpr int kMany = 150;
    std::vector<MPI_Comm> comms(kMany, MPI_COMM_NULL);
    for (MPI_Comm& comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        warm_up(comm);
        int sum = 1;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(sum == size_of(comm));
    }
    const int most = memories();
    EXPECT(most > 20 && most < kMany);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    EXPECT(memories() <= 1);
    same_bits(MPI_COMM_WORLD, 100, 0);
}

// One dies between calls, another one inside; those left see each death soon, and go on among themselves.
void death() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int victim = 2; victim > 0; --victim) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        warm_up(comm);
        warm_up(comm);
        EXPECT(memories() > 0);
        std::vector<double> in(3000, 1.0), out(3000);
        int error = MPI_SUCCESS;
        viaduct::tests::RunningTime<> last;  // since the begin of the last call
        for (int call = 0; error == MPI_SUCCESS && call < 1'000'000; ++call) {
            if (call == 100 && rank_in(comm) == victim) ::raise(SIGKILL);
            last = viaduct::tests::RunningTime<>();
            switch (call % 4) {
                case 0: error = MPI_Barrier(comm); break;
                case 1: error = MPI_Bcast(in.data(), 3000, MPI_DOUBLE, call / 4 % size_of(comm), comm); break;
                case 2: error = MPI_Allreduce(in.data(), out.data(), 3000, MPI_DOUBLE, MPI_SUM, comm); break;
                default:
                    error = MPI_Reduce(in.data(), out.data(), 1, MPI_DOUBLE, MPI_SUM, call / 4 % size_of(comm), comm);
            }
        }
        const std::chrono::nanoseconds took(last.running_ns());
        MPI_Error_class(error, &error);
        EXPECT(error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED);
        EXPECT(took <= std::chrono::seconds(10));
        MPIX_Comm_revoke(comm);
        EXPECT(MPI_Barrier(comm) != MPI_SUCCESS);
        EXPECT(MPI_Bcast(in.data(), 1, MPI_DOUBLE, rank_in(comm), comm) != MPI_SUCCESS);
        MPI_Comm left = MPI_COMM_NULL;
        EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
        MPI_Comm_free(&comm);
        comm = left;
    }
    warm_up(comm);
    int sum = 1;
    EXPECT(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size_of(comm));
    int all_wrong = 0;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, comm);
    if (rank_in(comm) == 0 && all_wrong == 0) std::puts("No Errors");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    std::exit(all_wrong != 0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc == 2 ? argv[1] : "";
    const bool threads = std::getenv("NODE_COLL_THREADS") != nullptr;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    on = what != "off";
    if (what == "death") death();
    if (what == "many")
        many();
    else
        right_results();
    return report();
}
