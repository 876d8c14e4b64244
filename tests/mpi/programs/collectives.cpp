// SPDX-License-Identifier: BSD-2-Clause
// Every collective operation, blocking and not, with shares on both sides of each change of algorithm, on one group of
// any size; every element of every result is checked.
#include <algorithm>
#include <numeric>
#include <vector>

#include "check.hpp"

namespace {

MPI_Comm comm;
int rank, size;
bool waiting;  // the non-blocking function and a wait, instead of the blocking one

// What element i of rank r's input is; small, so that sums stay exact.
int value(int r, int i) { return (r * 31 + i * 7) % 101; }

std::vector<int> input(int r, int n) {
    std::vector<int> v(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
        v[size_t(i)] = value(r, i);
    }
    return v;
}

// One call of either kind.
#define COLLECTIVE(name, ...)                          \
    do {                                               \
        if (waiting) {                                 \
            MPI_Request request_;                      \
            MPI_I##name(__VA_ARGS__, comm, &request_); \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);    \
        } else {                                       \
            MPI_CALL_##name(__VA_ARGS__, comm);        \
        }                                              \
    } while (0)
#define MPI_CALL_bcast MPI_Bcast
#define MPI_CALL_gather MPI_Gather
#define MPI_CALL_gatherv MPI_Gatherv
#define MPI_CALL_scatter MPI_Scatter
#define MPI_CALL_scatterv MPI_Scatterv
#define MPI_CALL_allgather MPI_Allgather
#define MPI_CALL_allgatherv MPI_Allgatherv
#define MPI_CALL_alltoall MPI_Alltoall
#define MPI_CALL_alltoallv MPI_Alltoallv
#define MPI_CALL_reduce MPI_Reduce
#define MPI_CALL_allreduce MPI_Allreduce
#define MPI_CALL_reduce_scatter MPI_Reduce_scatter
#define MPI_CALL_scan MPI_Scan
#define MPI_CALL_exscan MPI_Exscan

bool is_input_of_all(const std::vector<int>& v, int n) {
    bool good = true;
    for (int r = 0; r < size; ++r) {
        for (int i = 0; i < n; ++i) {
            good &= v[size_t(r) * size_t(n) + size_t(i)] == value(r, i);
        }
    }
    return good;
}

int sum_below(int ranks, int i) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) {
        sum += value(r, i);
    }
    return sum;
}

void move(int n) {
    const auto all = size_t(n) * size_t(size);
    for (int root = 0; root < size; root += std::max(1, size - 1)) {
        std::vector<int> data = rank == root ? input(root, n) : std::vector<int>(size_t(n), -1);
        COLLECTIVE(bcast, data.data(), n, MPI_INT, root);
        EXPECT(data == input(root, n));

        std::vector<int> mine = input(rank, n), gathered(all, -1);
        COLLECTIVE(gather, mine.data(), n, MPI_INT, gathered.data(), n, MPI_INT, root);
        EXPECT(rank != root || is_input_of_all(gathered, n));

        std::fill(mine.begin(), mine.end(), -1);
        for (int r = 0; r < size; ++r) {
            std::vector<int> part = input(r, n);
            std::copy(part.begin(), part.end(), gathered.begin() + r * n);
        }
        COLLECTIVE(scatter, gathered.data(), n, MPI_INT, mine.data(), n, MPI_INT, root);
        EXPECT(mine == input(rank, n));
    }
    std::vector<int> mine = input(rank, n), everything(all, -1);
    COLLECTIVE(allgather, mine.data(), n, MPI_INT, everything.data(), n, MPI_INT);
    EXPECT(is_input_of_all(everything, n));

    std::fill(everything.begin(), everything.end(), -1);
    std::copy(mine.begin(), mine.end(), everything.begin() + rank * n);
    COLLECTIVE(allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, everything.data(), n, MPI_INT);
    EXPECT(is_input_of_all(everything, n));

    // Rank r sends to s what r's input says, moved by s.
    std::vector<int> out(all), in(all, -1);
    for (int s = 0; s < size; ++s) {
        for (int i = 0; i < n; ++i) {
            out[size_t(s * n + i)] = value(rank, i) + s;
        }
    }
    COLLECTIVE(alltoall, out.data(), n, MPI_INT, in.data(), n, MPI_INT);
    bool good = true;
    for (int r = 0; r < size; ++r) {
        for (int i = 0; i < n; ++i) {
            good &= in[size_t(r * n + i)] == value(r, i) + rank;
        }
    }
    EXPECT(good);
    std::vector<int> replaced = out;
    COLLECTIVE(alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, replaced.data(), n, MPI_INT);
    EXPECT(replaced == in);
}

// Rank r's share has r + 1 elements.
void move_unequal() {
    std::vector<int> counts(static_cast<size_t>(size)), begins(static_cast<size_t>(size));
    for (int r = 0, at = 0; r < size; at += ++r) {
        counts[size_t(r)] = r + 1;
        begins[size_t(r)] = at;
    }
    const int total = size * (size + 1) / 2;
    std::vector<int> mine = input(rank, rank + 1), all(size_t(total), -1);
    auto holds = [&] {
        bool good = true;
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i <= r; ++i) {
                good &= all[size_t(begins[size_t(r)] + i)] == value(r, i);
            }
        }
        return good;
    };
    COLLECTIVE(allgatherv, mine.data(), rank + 1, MPI_INT, all.data(), counts.data(), begins.data(), MPI_INT);
    EXPECT(holds());
    std::fill(all.begin(), all.end(), -1);
    COLLECTIVE(gatherv, mine.data(), rank + 1, MPI_INT, all.data(), counts.data(), begins.data(), MPI_INT, 0);
    EXPECT(rank != 0 || holds());
    std::fill(mine.begin(), mine.end(), -1);
    COLLECTIVE(scatterv, all.data(), counts.data(), begins.data(), MPI_INT, mine.data(), rank + 1, MPI_INT, 0);
    EXPECT(mine == input(rank, rank + 1));
}

void reduce(int n) {
    std::vector<int> mine = input(rank, n), result(size_t(n), -1);
    auto is_sum_of = [&](int ranks) {
        bool good = true;
        for (int i = 0; i < n; ++i) {
            good &= result[size_t(i)] == sum_below(ranks, i);
        }
        return good;
    };
    for (int root = 0; root < size; root += std::max(1, size - 1)) {
        std::fill(result.begin(), result.end(), -1);
        COLLECTIVE(reduce, mine.data(), result.data(), n, MPI_INT, MPI_SUM, root);
        EXPECT(rank != root || is_sum_of(size));
    }
    COLLECTIVE(allreduce, mine.data(), result.data(), n, MPI_INT, MPI_SUM);
    EXPECT(is_sum_of(size));
    result = mine;
    COLLECTIVE(allreduce, MPI_IN_PLACE, result.data(), n, MPI_INT, MPI_SUM);
    EXPECT(is_sum_of(size));
    COLLECTIVE(scan, mine.data(), result.data(), n, MPI_INT, MPI_SUM);
    EXPECT(is_sum_of(rank + 1));
    COLLECTIVE(exscan, mine.data(), result.data(), n, MPI_INT, MPI_SUM);
    EXPECT(rank == 0 || is_sum_of(rank));

    std::vector<int> counts(size_t(size), n), wide = input(rank, n * size), part(size_t(n), -1);
    COLLECTIVE(reduce_scatter, wide.data(), part.data(), counts.data(), MPI_INT, MPI_SUM);
    bool good = true;
    for (int i = 0; i < n; ++i) {
        good &= part[size_t(i)] == sum_below(size, rank * n + i);
    }
    EXPECT(good);
}

// a, b -> the map x -> b(a(x)) of maps modulo 97: associative, and the order shows.
template <typename Count>
void compose(void* in, void* inout, Count* n, MPI_Datatype*) {
    auto* a = static_cast<int*>(in);
    auto* b = static_cast<int*>(inout);
    for (Count i = 0; i < 2 * *n; i += 2) {
        int factor = a[i] * b[i] % 97;
        int term = (a[i + 1] * b[i] + b[i + 1]) % 97;
        b[i] = factor;
        b[i + 1] = term;
    }
}

// With an operator made with counts of int, or of 64 bits.
void make_compose(bool wide, MPI_Op* op) {
    if (wide) {
        MPI_Op_create_c(compose<MPI_Count>, 0, op);
    } else {
        MPI_Op_create(compose<int>, 0, op);
    }
}

void reduce_in_order(bool wide, MPI_Datatype pair) {
    MPI_Op op;
    make_compose(wide, &op);
    std::vector<int> prefix;
    int expected[2] = {1, 0};
    for (int r = 0; r < size; ++r) {
        int step[2] = {r + 2, r * 5 + 1};
        int so_far[2] = {expected[0], expected[1]};
        int one = 1;
        compose<int>(so_far, step, &one, nullptr);
        std::copy(step, step + 2, expected);
        if (r == rank) {
            prefix.assign(expected, expected + 2);
        }
    }
    int mine[2] = {rank + 2, rank * 5 + 1}, result[2] = {-1, -1};
    COLLECTIVE(allreduce, mine, result, 1, pair, op);
    EXPECT(std::equal(result, result + 2, expected));
    const int root = size - 1;
    COLLECTIVE(reduce, mine, result, 1, pair, op, root);
    EXPECT(rank != root || std::equal(result, result + 2, expected));
    COLLECTIVE(scan, mine, result, 1, pair, op);
    EXPECT(std::equal(result, result + 2, prefix.begin()));

    // Freed while it is still wanted, with others of other functions made after it.
    MPI_Request requests[2];
    int results[2][2];
    MPI_Allreduce_init(mine, results[0], 1, pair, op, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Iallreduce(mine, results[1], 1, pair, op, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Op others[4];
    for (MPI_Op& other : others) {
        if (wide) {
            MPI_Op_create_c([](void*, void*, MPI_Count*, MPI_Datatype*) {}, 0, &other);
        } else {
            MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 0, &other);
        }
    }
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(std::equal(results[0], results[0] + 2, expected) && std::equal(results[1], results[1] + 2, expected));
    MPI_Request_free(&requests[0]);
    for (MPI_Op& other : others) {
        MPI_Op_free(&other);
    }
}

void reduce_in_order() {
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (bool wide : {false, true}) {
        reduce_in_order(wide, pair);
        reduce_in_order(wide, MPI_2INT);
    }
    MPI_Type_free(&pair);
}

void all_of(MPI_Comm which) {
    comm = which;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (bool kind : {false, true}) {
        waiting = kind;
        for (int n : {0, 1, 3, 60, 700, 20000}) {
            move(n);
            reduce(n);
        }
        move_unequal();
        reduce_in_order();
    }
    MPI_Barrier(comm);
}

// Many at once, waited for in the opposite order.
void many_at_once() {
    constexpr int kMany = 20;
    int in[kMany], out[kMany];
    MPI_Request requests[kMany];
    for (int i = 0; i < kMany; ++i) {
        in[i] = rank + i;
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, comm, &requests[i]);
    }
    for (int i = kMany - 1; i >= 0; --i) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        EXPECT(out[i] == size - 1 + i);
    }
}

// The two halves of the world talk across.
void across() {
    int world_rank, world_size;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size < 2) {
        return;
    }
    bool upper = world_rank >= world_size / 2;
    MPI_Comm half, inter, merged;
    MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : world_size / 2, 5, &inter);
    int others = 0, one = 1, sum = 0;
    MPI_Comm_remote_size(inter, &others);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(sum == others);
    std::vector<int> ranks(size_t(others), -1);
    MPI_Allgather(&world_rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, inter);
    EXPECT(ranks.front() == (upper ? 0 : world_size / 2));
    EXPECT(ranks.back() == ranks.front() + others - 1);
    int word = upper ? -1 : 77;
    MPI_Bcast(&word, 1, MPI_INT, upper ? 0 : world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    EXPECT(word == 77);
    // Members of the root's group that are not the root pass MPI_PROC_NULL, and nothing else of theirs counts.
    const int root = !upper ? 0 : world_rank == world_size / 2 ? MPI_ROOT : MPI_PROC_NULL;
    int highest = -1;
    MPI_Reduce(&world_rank, &highest, 1, MPI_INT, root == MPI_PROC_NULL ? MPI_SUM : MPI_MAX, root, inter);
    EXPECT(highest == (root == MPI_ROOT ? world_size / 2 - 1 : -1));
    MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, upper, &merged);
    int result = -1;
    MPI_Comm_compare(merged, MPI_COMM_WORLD, &result);
    EXPECT(result == MPI_CONGRUENT);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    all_of(MPI_COMM_WORLD);
    many_at_once();
    MPI_Comm dup, reversed;
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int world_rank = rank;
    MPI_Comm_split(dup, 0, -world_rank, &reversed);
    MPI_Comm_free(&dup);
    all_of(reversed);
    EXPECT(rank == size - 1 - world_rank);
    MPI_Comm_free(&reversed);
    across();
    return report();
}
