// SPDX-License-Identifier: BSD-2-Clause
// What MPI_Win_flush says is done is done at the target. Two ranks write to each other, flush, and read what
// the other has written to them: the second one sees the first one's, so never do both read what was there
// before (a processor's store that is still on its way while it reads on would let them). By every kind of
// write, with locked steps of the processor before, behind and in place of it. And what is flushed before a flag
// is set is there for a reader of the flag.
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kRounds = 500;     // between two meetings by messages
constexpr double kSeconds = 0.3;  // of each kind
constexpr MPI_Aint kLine = 64;
constexpr MPI_Aint kAside = kRounds * kLine;  // a line for steps that no test looks at

int rank;

enum class Write {
    put, put_wide, put_after_step, put_before_step, put_before_read, step, swap, guarded, guarded_after_step
};
constexpr Write kWrites[] = {Write::put,      Write::put_wide, Write::put_after_step,
                             Write::put_before_step, Write::put_before_read, Write::step,
                             Write::swap,     Write::guarded,  Write::guarded_after_step};
constexpr const char* kNames[] = {"put", "put of a line", "put after a step", "put before a step",
                                  "put before a read", "fetch-and-op", "compare-and-swap", "under the guard",
                                  "under the guard after a step"};

// Where both wait for each other with nothing but loads and stores.
class Meeting {
public:
    Meeting() {
        int unit = 0;
        MPI_Aint bytes = 0;
        char* own = nullptr;
        char* others = nullptr;
        MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win_);
        MPI_Win_shared_query(win_, 1 - rank, &bytes, &unit, &others);
        own_ = reinterpret_cast<uint64_t*>(own);
        others_ = reinterpret_cast<uint64_t*>(others);
        *own_ = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Meeting() { MPI_Win_free(&win_); }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    void meet() {
        std::atomic_ref(*own_).store(++round_, std::memory_order_release);
        for (int tries = 1; std::atomic_ref(*others_).load(std::memory_order_acquire) < round_; tries++) {
            if (tries % 1000 != 0) continue;
            // The other may be waiting for this one to serve it, or for its processor.
            int flag = 0;
            MPI_Iprobe(1 - rank, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            ::sched_yield();
        }
    }

private:
    MPI_Win win_ = MPI_WIN_NULL;
    uint64_t* own_;
    uint64_t* others_;
    uint64_t round_ = 0;
};

// A one, at the beginning of a line of the other rank.
void write_one(Write how, MPI_Win win, MPI_Aint line) {
    static const int64_t one = 1, none = 0;
    static const int64_t wide[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const long double huge = 1.0L;  // wider than a processor's word; its first half is not 0
    static int64_t old, aside;
    const int other = 1 - rank;
    if (how == Write::put_after_step || how == Write::guarded_after_step)
        MPI_Fetch_and_op(&one, &aside, MPI_INT64_T, rank, kAside, MPI_SUM, win);
    switch (how) {
        case Write::put_wide:
            MPI_Put(wide, 8, MPI_INT64_T, other, line, 8, MPI_INT64_T, win);
            break;
        case Write::step:
            MPI_Fetch_and_op(&one, &old, MPI_INT64_T, other, line, MPI_SUM, win);
            break;
        case Write::swap:
            MPI_Compare_and_swap(&one, &none, &old, MPI_INT64_T, other, line, win);
            break;
        case Write::guarded:
        case Write::guarded_after_step:
            MPI_Accumulate(&huge, 1, MPI_LONG_DOUBLE, other, line, 1, MPI_LONG_DOUBLE, MPI_REPLACE, win);
            break;
        default:
            MPI_Put(&one, 1, MPI_INT64_T, other, line, 1, MPI_INT64_T, win);
    }
    if (how == Write::put_before_step)
        MPI_Fetch_and_op(&one, &aside, MPI_INT64_T, rank, kAside, MPI_SUM, win);
    if (how == Write::put_before_read)
        MPI_Fetch_and_op(&one, &aside, MPI_INT64_T, rank, kAside, MPI_NO_OP, win);
    MPI_Win_flush(other, win);
}

void crossed(bool allocated, Write how) {
    const MPI_Aint bytes = (kRounds + 1) * kLine;
    std::vector<int64_t> own(static_cast<size_t>(bytes) / 8);
    void* base = own.data();
    MPI_Win win;
    if (allocated)
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    else
        MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    std::vector<int64_t> seen(kRounds), others(kRounds);
    long rounds = 0, both_old = 0;
    {
        Meeting meeting;
        const double began = MPI_Wtime();
        for (int go = 1; go != 0;) {
            // One's own lines are at hand to be read, and far from the other, which writes them.
            std::memset(base, 0, static_cast<size_t>(bytes));
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_lock_all(0, win);
            for (int round = 0; round < kRounds; round++) {
                const MPI_Aint line = round * kLine;
                meeting.meet();
                // Neither is always the first.
                for (volatile int wait = (round / 8) % 16 * ((round + rank) % 2); wait > 0;) wait = wait - 1;
                write_one(how, win, line);
                MPI_Get(&seen[static_cast<size_t>(round)], 1, MPI_INT64_T, rank, line, 1, MPI_INT64_T, win);
                MPI_Win_flush(rank, win);
            }
            MPI_Win_unlock_all(win);
            MPI_Sendrecv(seen.data(), kRounds, MPI_INT64_T, 1 - rank, 0, others.data(), kRounds, MPI_INT64_T,
                         1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t i = 0; i < seen.size(); i++) both_old += seen[i] == 0 && others[i] == 0;
            rounds += kRounds;
            go = MPI_Wtime() - began < kSeconds;
            MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    if (both_old != 0)
        std::printf("%s, %s window: in %ld of %ld rounds both read what was there before\n",
                    kNames[static_cast<int>(how)], allocated ? "allocated" : "created", both_old, rounds);
    EXPECT(both_old == 0);
    MPI_Win_free(&win);
}

// Rank 0 puts a number into eight lines of rank 1, flushes, and sets the flag to that number by an atomic
// step. A reader of the flag sees that number, or a later one, in each line.
void followed(bool allocated) {
    constexpr MPI_Aint kFlag = 8 * kLine;
    std::vector<int64_t> own(kFlag / 8 + 1);
    void* base = own.data();
    MPI_Win win;
    if (allocated)
        MPI_Win_allocate(kFlag + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    else
        MPI_Win_create(base, kFlag + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    std::memset(base, 0, kFlag + 8);
    MPI_Barrier(MPI_COMM_WORLD);
    constexpr int64_t kLast = 20000;
    MPI_Win_lock_all(0, win);
    int64_t flag = 0, old = 0;
    for (int64_t number = 1; rank == 0 && number <= kLast; number++) {
        for (MPI_Aint line = 0; line < 8; line++)
            MPI_Put(&number, 1, MPI_INT64_T, 1, line * kLine, 1, MPI_INT64_T, win);
        MPI_Win_flush(1, win);
        MPI_Fetch_and_op(&number, &old, MPI_INT64_T, 1, kFlag, MPI_REPLACE, win);
        MPI_Win_flush(1, win);
        EXPECT(old == number - 1);
    }
    while (rank == 1 && flag < kLast) {
        MPI_Fetch_and_op(nullptr, &flag, MPI_INT64_T, 1, kFlag, MPI_NO_OP, win);
        MPI_Win_flush(1, win);
        int64_t lines[8] = {};
        // The line put last first: it has the least time to get here.
        for (MPI_Aint line = 7; line >= 0; line--)
            MPI_Get(&lines[line], 1, MPI_INT64_T, 1, line * kLine, 1, MPI_INT64_T, win);
        MPI_Win_flush(1, win);
        for (const int64_t line : lines) EXPECT(line >= flag);
        int something = 0;
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &something, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

// Rank 0 waits for a flag in shared memory, by flushes or by MPI_Win_sync alone. Rank 1 sets it when what it asks of
// rank 0 has been done, which rank 0 has to serve: those calls do.
void served_meanwhile(bool by_sync) {
    int64_t* flag = nullptr;
    int64_t memory = 0;
    MPI_Win shared, created;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &shared);
    MPI_Win_create(&memory, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    *flag = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, shared);
    MPI_Win_lock_all(0, created);
    for (int64_t round = 1; round <= 100; round++) {
        if (rank == 1) {
            MPI_Put(&round, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, created);
            MPI_Win_flush(0, created);
            MPI_Put(&round, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, shared);
            MPI_Win_flush(0, shared);
        } else {
            for (int64_t seen = 0; seen < round;) {
                if (by_sync) {
                    seen = std::atomic_ref(*flag).load(std::memory_order_acquire);
                    MPI_Win_sync(shared);
                } else {
                    MPI_Fetch_and_op(nullptr, &seen, MPI_INT64_T, 0, 0, MPI_NO_OP, shared);
                    MPI_Win_flush(0, shared);
                }
            }
            EXPECT(std::atomic_ref(memory).load() == round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(created);
    MPI_Win_unlock_all(shared);
    MPI_Win_free(&created);
    MPI_Win_free(&shared);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const bool allocated : {true, false}) {
        for (const Write how : kWrites) crossed(allocated, how);
        followed(allocated);
    }
    served_meanwhile(false);
    served_meanwhile(true);
    return report();
}
