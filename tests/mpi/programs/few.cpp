// SPDX-License-Identifier: BSD-2-Clause
// Barriers and small reductions among the first 1, 2, ... ranks: no rank leaves a barrier before all have
// entered it, and a reduction gives all ranks the same bits. Shared memory is the witness. Start it with more
// ranks than do it in one round.
#include <atomic>
#include <cstring>
#include <ctime>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kTimes = 150;

struct Group {
    MPI_Comm comm;
    int rank, size;
};

void nap() {
    const timespec shortly{0, 100'000};
    nanosleep(&shortly, nullptr);  // sleeps: this rank is late
}

// How often each rank has entered, one cache line each.
class Entries {
public:
    explicit Entries(const Group& group) {
        MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, group.comm, &own_, &window_);
        for (int rank = 0; rank < group.size; ++rank) {
            MPI_Aint bytes = 0;
            int unit = 0;
            void* at = nullptr;
            MPI_Win_shared_query(window_, rank, &bytes, &unit, &at);
            words_.push_back(static_cast<std::atomic<int>*>(at));
        }
        own_->store(0);
        MPI_Win_fence(0, window_);
    }
    ~Entries() { MPI_Win_free(&window_); }

    void enter() { own_->fetch_add(1); }
    // Each rank has entered so often, and none more than once again.
    bool all_at(int times) const {
        for (const std::atomic<int>* word : words_) {
            const int seen = word->load();
            if (seen != times && seen != times + 1) return false;
        }
        return true;
    }

private:
    MPI_Win window_ = MPI_WIN_NULL;
    std::atomic<int>* own_ = nullptr;
    std::vector<std::atomic<int>*> words_;
};

void barriers(const Group& group) {
    Entries entries(group);
    for (int i = 1; i <= kTimes; ++i) {
        if (i % (group.size + 1) == group.rank) nap();
        entries.enter();
        MPI_Barrier(group.comm);
        EXPECT(entries.all_at(i));
    }
    MPI_Barrier(group.comm);
}

// Sums whose bits depend on the order of their parts.
void sums(const Group& group, int items) {
    const auto part = [&](int rank, int i) {
        return 1.0 / (1 + rank * 7 + i) * (rank % 2 == 0 ? 1e10 : 1e-6);
    };
    std::vector<double> in, out(size_t(items), -1.0);
    for (int i = 0; i < items; ++i) in.push_back(part(group.rank, i));
    MPI_Allreduce(in.data(), out.data(), items, MPI_DOUBLE, MPI_SUM, group.comm);
    std::vector<double> results(size_t(items) * size_t(group.size));
    MPI_Allgather(out.data(), items, MPI_DOUBLE, results.data(), items, MPI_DOUBLE, group.comm);
    for (int rank = 0; rank < group.size; ++rank)
        EXPECT(std::memcmp(&results[size_t(rank) * size_t(items)], out.data(), size_t(items) * 8) == 0);
    for (int i = 0; i < items; ++i) {
        double sum = 0;
        for (int rank = 0; rank < group.size; ++rank) sum += part(rank, i);
        const double off = out[size_t(i)] - sum;
        EXPECT(off < 1e-3 && off > -1e-3);
    }
}

void exact(const Group& group, int round) {
    long value = group.rank * 3 + round, least = value;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LONG, MPI_SUM, group.comm);
    EXPECT(value == long(group.size) * (group.size - 1) / 2 * 3 + long(group.size) * round);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_LONG, MPI_MIN, group.comm);
    EXPECT(least == round);
    struct {
        int value, rank;
    } mine = {(group.rank + round) % group.size, group.rank}, most = {-1, -1};
    MPI_Allreduce(&mine, &most, 1, MPI_2INT, MPI_MAXLOC, group.comm);
    EXPECT(most.value == group.size - 1 && (most.rank + round) % group.size == most.value);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int few = 1; few <= size; ++few) {
        Group group{MPI_COMM_NULL, rank, few};
        MPI_Comm_split(MPI_COMM_WORLD, rank < few ? 0 : MPI_UNDEFINED, rank, &group.comm);
        if (group.comm == MPI_COMM_NULL) continue;
        barriers(group);
        for (int items = 1; items <= 33; items += 8) sums(group, items);
        for (int round = 0; round < kTimes; ++round) exact(group, round);
        MPI_Comm_free(&group.comm);
    }
    return report();
}
