// SPDX-License-Identifier: BSD-2-Clause
// One-sided communication: every operation on every kind of window, so through shared memory and by messages,
// against what must lie in memory afterwards; the rules of epochs; what is refused.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "check.hpp"

namespace {

int rank, size;
enum class Flavor { create, allocate, shared, dynamic };

// `n` items of T at each member, zeroed.
template <typename T>
class Memory {
public:
    Memory(Flavor flavor, int n) : flavor_(flavor), n_(n), own_(size_t(n)) {
        const MPI_Aint bytes = MPI_Aint(sizeof(T)) * n;
        switch (flavor) {
            case Flavor::create:
                base = own_.data();
                MPI_Win_create(base, bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
                break;
            case Flavor::allocate:
                MPI_Win_allocate(bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
                break;
            case Flavor::shared:
                MPI_Win_allocate_shared(bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
                break;
            case Flavor::dynamic:
                base = own_.data();
                MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
                MPI_Win_attach(win, base, bytes);
                bases_.resize(size_t(size));
                MPI_Aint at = 0;
                MPI_Get_address(base, &at);
                MPI_Allgather(&at, 1, MPI_AINT, bases_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
        }
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        for (int i = 0; i < n; i++) base[i] = T{};
        MPI_Win_fence(0, win);
    }
    ~Memory() {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        if (flavor_ == Flavor::dynamic) MPI_Win_detach(win, base);
        EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
        EXPECT(win == MPI_WIN_NULL);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // The displacement of item i at a member.
    MPI_Aint at(int member, int i) const {
        return flavor_ == Flavor::dynamic ? bases_[size_t(member)] + MPI_Aint(sizeof(T)) * i : i;
    }

    T* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;

private:
    Flavor flavor_;
    int n_;
    std::vector<T> own_;
    std::vector<MPI_Aint> bases_;
};

int right() { return (rank + 1) % size; }
int left() { return (rank + size - 1) % size; }

void put_and_get(Flavor flavor, int n) {
    Memory<int> memory(flavor, n);
    std::vector<int> out(static_cast<size_t>(n)), in(static_cast<size_t>(n), -1);
    std::iota(out.begin(), out.end(), rank * 1000);
    EXPECT(MPI_Put(out.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, memory.win) ==
           MPI_SUCCESS);
    MPI_Win_fence(0, memory.win);
    for (int i = 0; i < n; i++) EXPECT(memory.base[i] == left() * 1000 + i);
    EXPECT(MPI_Get(in.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, memory.win) ==
           MPI_SUCCESS);
    MPI_Win_fence(0, memory.win);
    EXPECT(in == out);
}

// Every other item at the origin, every third at the target.
void derived(Flavor flavor, int n) {
    Memory<double> memory(flavor, 3 * n);
    MPI_Datatype two, three;
    MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &two);
    MPI_Type_vector(n, 1, 3, MPI_DOUBLE, &three);
    MPI_Type_commit(&two);
    MPI_Type_commit(&three);
    std::vector<double> out(static_cast<size_t>(2 * n)), in(static_cast<size_t>(2 * n), -1);
    std::iota(out.begin(), out.end(), rank);
    MPI_Put(out.data(), 1, two, right(), memory.at(right(), 0), 1, three, memory.win);
    MPI_Win_fence(0, memory.win);
    for (int i = 0; i < 3 * n; i++) EXPECT(memory.base[i] == (i % 3 == 0 ? left() + i / 3 * 2 : 0));
    MPI_Win_fence(0, memory.win);
    MPI_Accumulate(out.data(), 1, two, right(), memory.at(right(), 0), 1, three, MPI_SUM, memory.win);
    MPI_Win_fence(0, memory.win);
    for (int i = 0; i < 3 * n; i++) EXPECT(memory.base[i] == (i % 3 == 0 ? 2 * (left() + i / 3 * 2) : 0));
    MPI_Get(in.data(), 1, two, right(), memory.at(right(), 0), 1, three, memory.win);
    // A type may be freed while operations with it are under way.
    MPI_Type_free(&two);
    MPI_Type_free(&three);
    MPI_Win_fence(0, memory.win);
    for (int i = 0; i < n; i++)
        EXPECT(in[size_t(2 * i)] == 2 * out[size_t(2 * i)] && in[size_t(2 * i + 1)] == -1);
}

// All members add to, and replace at, the same items; the old values of a counter are all different.
void accumulates(Flavor flavor) {
    constexpr int kRounds = 200;
    Memory<int64_t> memory(flavor, 8);
    std::vector<char> seen(static_cast<size_t>(size * kRounds));
    MPI_Win_lock_all(0, memory.win);
    const int64_t one = 1;
    for (int i = 0; i < kRounds; i++) {
        int64_t old = -1;
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, memory.at(0, 0), MPI_SUM, memory.win);
        MPI_Win_flush(0, memory.win);
        EXPECT(old >= 0 && old < size * kRounds);
        if (old >= 0 && old < size * kRounds) seen[size_t(old)]++;
        const int64_t many[3] = {1, 2, 3};
        MPI_Accumulate(many, 3, MPI_INT64_T, size - 1, memory.at(size - 1, 1), 3, MPI_INT64_T, MPI_SUM,
                       memory.win);
    }
    MPI_Win_unlock_all(memory.win);
    MPI_Allreduce(MPI_IN_PLACE, seen.data(), size * kRounds, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (const char times : seen) EXPECT(times == 1);
    if (rank == 0) EXPECT(memory.base[0] == size * kRounds);
    if (rank == size - 1)
        for (int i = 1; i <= 3; i++) EXPECT(memory.base[i] == i * size * kRounds);
    MPI_Barrier(MPI_COMM_WORLD);

    int64_t result[2] = {-1, -1};
    const int64_t operands[2] = {5, 6};
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, memory.win);
    MPI_Get_accumulate(operands, 2, MPI_INT64_T, result, 2, MPI_INT64_T, right(), memory.at(right(), 4), 2,
                       MPI_INT64_T, MPI_REPLACE, memory.win);
    MPI_Win_flush(right(), memory.win);
    EXPECT(result[0] == 0 && result[1] == 0);
    MPI_Get_accumulate(nullptr, 0, MPI_DATATYPE_NULL, result, 2, MPI_INT64_T, right(), memory.at(right(), 4),
                       2, MPI_INT64_T, MPI_NO_OP, memory.win);
    MPI_Win_unlock(right(), memory.win);
    EXPECT(result[0] == 5 && result[1] == 6);
}

// A lock made of compare-and-swap protects a counter that is got and put.
void swaps(Flavor flavor) {
    constexpr int kRounds = 20;
    Memory<int> memory(flavor, 2);
    MPI_Win_lock_all(0, memory.win);
    const int free = 0, taken = 1;
    for (int i = 0; i < kRounds; i++) {
        int old = -1;
        do {
            MPI_Compare_and_swap(&taken, &free, &old, MPI_INT, 0, memory.at(0, 0), memory.win);
            MPI_Win_flush(0, memory.win);
        } while (old != free);
        int counter = -1;
        MPI_Get(&counter, 1, MPI_INT, 0, memory.at(0, 1), 1, MPI_INT, memory.win);
        MPI_Win_flush(0, memory.win);
        counter++;
        MPI_Put(&counter, 1, MPI_INT, 0, memory.at(0, 1), 1, MPI_INT, memory.win);
        MPI_Win_flush(0, memory.win);
        MPI_Accumulate(&free, 1, MPI_INT, 0, memory.at(0, 0), 1, MPI_INT, MPI_REPLACE, memory.win);
        MPI_Win_flush(0, memory.win);
    }
    MPI_Win_unlock_all(memory.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) EXPECT(memory.base[1] == size * kRounds);
}

template <typename T>
void add_all(Flavor flavor, MPI_Datatype type) {
    Memory<T> memory(flavor, 3);
    const T mine[3] = {T(1), T(2), T(3)};
    MPI_Accumulate(mine, 3, type, 0, memory.at(0, 0), 3, type, MPI_SUM, memory.win);
    MPI_Win_fence(0, memory.win);
    if (rank == 0)
        for (int i = 0; i < 3; i++) EXPECT(memory.base[i] == mine[i] * T(size));
    MPI_Win_fence(0, memory.win);
}

// Wide types and pairs of a value and an index, which no processor changes at once.
void wide(Flavor flavor) {
    add_all<float>(flavor, MPI_FLOAT);
    add_all<double>(flavor, MPI_DOUBLE);
    add_all<long double>(flavor, MPI_LONG_DOUBLE);
    add_all<short>(flavor, MPI_SHORT);
    add_all<std::complex<double>>(flavor, MPI_C_DOUBLE_COMPLEX);
    add_all<std::complex<float>>(flavor, MPI_C_FLOAT_COMPLEX);
    struct Pair {
        double value;
        int index;
    };
    Memory<Pair> memory(flavor, 4);
    MPI_Datatype every_other;
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE_INT, &every_other);
    MPI_Type_commit(&every_other);
    Pair mine[2] = {{double(rank + 1), rank}, {double(2 * rank + 1), rank}};
    Pair old[2] = {};
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, memory.win);
    MPI_Get_accumulate(mine, 2, MPI_DOUBLE_INT, old, 2, MPI_DOUBLE_INT, 0, memory.at(0, 0), 1, every_other,
                       MPI_MAXLOC, memory.win);
    MPI_Win_unlock(0, memory.win);
    EXPECT(old[0].value >= 0 && old[0].value <= size);
    MPI_Type_free(&every_other);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        EXPECT(memory.base[0].value == size && memory.base[0].index == size - 1);
        EXPECT(memory.base[2].value == 2 * size - 1 && memory.base[2].index == size - 1);
        EXPECT(memory.base[1].value == 0 && memory.base[3].value == 0);
    }
}

void general(Flavor flavor) {
    Memory<int> memory(flavor, 4);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, memory.win);
    MPI_Group all, to, from;
    MPI_Win_get_group(memory.win, &all);
    const int r = right(), l = left();
    MPI_Group_incl(all, 1, &r, &to);
    MPI_Group_incl(all, 1, &l, &from);
    for (int round = 1; round <= 5; round++) {
        const int value = 100 * round + rank;
        MPI_Win_post(from, 0, memory.win);
        MPI_Win_start(to, 0, memory.win);
        EXPECT(MPI_Put(&value, 1, MPI_INT, r, memory.at(r, 1), 1, MPI_INT, memory.win) == MPI_SUCCESS);
        if (size > 2)
            EXPECT(MPI_Put(&value, 1, MPI_INT, l, memory.at(l, 1), 1, MPI_INT, memory.win) ==
                   MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_complete(memory.win) == MPI_SUCCESS);
        if (round % 2 == 0) {
            MPI_Win_wait(memory.win);
        } else {
            for (int flag = 0; flag == 0;) MPI_Win_test(memory.win, &flag);
        }
        EXPECT(memory.base[1] == 100 * round + l);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Win_fence(0, memory.win);
}

void requests(Flavor flavor, int n) {
    Memory<int> memory(flavor, n);
    std::vector<int> out(static_cast<size_t>(n), rank + 1), in(static_cast<size_t>(n)),
        old(static_cast<size_t>(n));
    MPI_Request request[2];
    MPI_Win_fence(MPI_MODE_NOSUCCEED, memory.win);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, memory.win);
    MPI_Rput(out.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, memory.win, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(right(), memory.win);
    MPI_Raccumulate(out.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, MPI_SUM, memory.win,
                    &request[0]);
    MPI_Rget(in.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, memory.win, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Rget_accumulate(out.data(), n, MPI_INT, old.data(), n, MPI_INT, right(), memory.at(right(), 0), n,
                        MPI_INT, MPI_PROD, memory.win, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    // One that is given up is done all the same.
    MPI_Rget(in.data(), n, MPI_INT, right(), memory.at(right(), 0), n, MPI_INT, memory.win, &request[1]);
    MPI_Request_free(&request[1]);
    MPI_Win_unlock(right(), memory.win);
    for (int i = 0; i < n; i++)
        EXPECT(old[size_t(i)] == 2 * (rank + 1) && in[size_t(i)] == 2 * (rank + 1) * (rank + 1));
}

void shared_memory() {
    int* own = nullptr;
    MPI_Win win;
    MPI_Win_allocate_shared(rank == 0 ? 0 : 4 * rank, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i < rank; i++) own[i] = 10 * rank + i;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    int* next = nullptr;
    for (int r = 1; r < size; r++) {
        MPI_Aint bytes = 0;
        int unit = 0;
        int* theirs = nullptr;
        MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
        EXPECT(bytes == 4 * r && unit == 4);
        EXPECT(next == nullptr || theirs == next);  // one behind the other
        for (int i = 0; i < r; i++) EXPECT(theirs[i] == 10 * r + i);
        next = theirs + r;
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

void attributes() {
    int items[4];
    MPI_Win win;
    MPI_Win_create(items, sizeof items, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    void* value = nullptr;
    int flag = 0;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    EXPECT(flag && value == items);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    EXPECT(flag && *static_cast<MPI_Aint*>(value) == sizeof items);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    EXPECT(flag && *static_cast<int*>(value) == 4);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    EXPECT(flag && *static_cast<int*>(value) == MPI_WIN_FLAVOR_CREATE);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    EXPECT(flag && *static_cast<int*>(value) == MPI_WIN_UNIFIED);
    MPI_Win_free(&win);
}

int handled = 0;
void handler(MPI_Win*, int* code, ...) { handled = *code; }

void refusals() {
    Memory<int> memory(Flavor::create, 4);
    MPI_Win win = memory.win;
    int x = 0;
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EXPECT(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(0, win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock_all(win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_complete(win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_wait(win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush(0, win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock(17, 0, 0, win) == MPI_ERR_LOCKTYPE);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win) == MPI_ERR_RANK);
    EXPECT(MPI_Win_fence(1 << 20, win) == MPI_ERR_ASSERT);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_fence(0, win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&win) == MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Put(&x, 1, MPI_INT, 0, 4, 1, MPI_INT, win) == MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put(&x, 1, MPI_INT, 0, -1, 1, MPI_INT, win) == MPI_ERR_DISP);
    EXPECT(MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, win) == MPI_ERR_RANK);
    EXPECT(MPI_Put(&x, -1, MPI_INT, 0, 0, 1, MPI_INT, win) == MPI_ERR_COUNT);
    EXPECT(MPI_Put(&x, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win) == MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win) == MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win) == MPI_ERR_TYPE);
    EXPECT(MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS);
    MPI_Errhandler made;
    MPI_Win_create_errhandler(handler, &made);
    MPI_Win_set_errhandler(win, made);
    MPI_Errhandler_free(&made);
    EXPECT(MPI_Get(&x, 1, MPI_INT, 0, 9, 1, MPI_INT, win) == MPI_ERR_RMA_RANGE &&
           handled == MPI_ERR_RMA_RANGE);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_unlock(0, win);
    EXPECT(MPI_Win_attach(win, &x, 4) == MPI_ERR_RMA_FLAVOR);
    MPI_Aint bytes;
    int unit;
    void* base;
    EXPECT(MPI_Win_shared_query(win, 0, &bytes, &unit, &base) == MPI_ERR_RMA_FLAVOR);
    MPI_Win_fence(0, win);

    // Memory that is not attached: told by the operation where this process sees that, else at the next flush.
    MPI_Win dynamic;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    if (size > 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, dynamic);
        int told = MPI_Put(&x, 1, MPI_INT, right(), 4096, 1, MPI_INT, dynamic);
        EXPECT(told + MPI_Win_flush(right(), dynamic) == MPI_ERR_RMA_RANGE);
        told = MPI_Get(&x, 1, MPI_INT, right(), 4096, 1, MPI_INT, dynamic);
        EXPECT(told + MPI_Win_flush(right(), dynamic) == MPI_ERR_RMA_RANGE);
        EXPECT(MPI_Win_unlock(right(), dynamic) == MPI_SUCCESS);
    }
    MPI_Win_free(&dynamic);
}

// Several operations before one flush, whichever of them is refused, short or long: it is told once, by the operation
// itself where this process sees what the target has attached, else by the flush.
void late_errors(int n) {
    Memory<int> memory(Flavor::dynamic, n);
    const std::vector<int> out(static_cast<size_t>(n), 1);
    std::vector<int> in(static_cast<size_t>(n));
    const MPI_Aint good = memory.at(right(), 0), bad = 4096;
    MPI_Win_fence(MPI_MODE_NOSUCCEED, memory.win);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, memory.win);
    for (int refused = 0; refused < 4 && size > 1; refused++) {
        int told = MPI_SUCCESS;
        for (int i = 0; i < 3; i++) {
            const MPI_Aint at = i == refused ? bad : good;
            const int error =
                i == 1 ? MPI_Accumulate(out.data(), n, MPI_INT, right(), at, n, MPI_INT, MPI_MAX, memory.win)
                       : MPI_Put(out.data(), n, MPI_INT, right(), at, n, MPI_INT, memory.win);
            EXPECT(error == MPI_SUCCESS || i == refused);
            if (error != MPI_SUCCESS) told = error;
        }
        const int late = MPI_Win_flush(right(), memory.win);
        EXPECT(told == MPI_SUCCESS || late == MPI_SUCCESS);
        EXPECT((told == MPI_SUCCESS ? late : told) == (refused < 3 ? MPI_ERR_RMA_RANGE : MPI_SUCCESS));
        MPI_Get_accumulate(out.data(), n, MPI_INT, in.data(), n, MPI_INT, right(), good, n, MPI_INT, MPI_MAX,
                           memory.win);
        EXPECT(MPI_Win_flush(right(), memory.win) == MPI_SUCCESS);
        EXPECT(in == out);
    }
    EXPECT(MPI_Win_unlock(right(), memory.win) == MPI_SUCCESS);

    // Between start and complete: the operation or the complete of that epoch tells, not a later call.
    MPI_Group all, to, from;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    const int r = right(), l = (rank + size - 1) % size;
    MPI_Group_incl(all, 1, &r, &to);
    MPI_Group_incl(all, 1, &l, &from);
    for (int refused = 0; refused < 3 && size > 1; refused++) {
        MPI_Win_post(from, 0, memory.win);
        MPI_Win_start(to, 0, memory.win);
        int told = MPI_SUCCESS;
        for (int i = 0; i < 2; i++)
            told += MPI_Put(out.data(), n, MPI_INT, r, i == refused ? bad : good, n, MPI_INT, memory.win);
        told += MPI_Win_complete(memory.win);
        EXPECT(told == (refused < 2 ? MPI_ERR_RMA_RANGE : MPI_SUCCESS));
        EXPECT(MPI_Win_wait(memory.win) == MPI_SUCCESS);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Win_fence(0, memory.win);
}

// One operation on two ranges that were attached apart and lie side by side; what lies beyond both is
// refused.
void adjacent_ranges() {
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<int> memory(300, -1), sent(300), got(200, -1);
    std::iota(sent.begin(), sent.end(), rank);
    EXPECT(MPI_Win_attach(win, memory.data(), 400) == MPI_SUCCESS);
    EXPECT(MPI_Win_attach(win, memory.data() + 100, 400) == MPI_SUCCESS);
    std::vector<MPI_Aint> bases(size_t(size), 0);
    MPI_Get_address(memory.data(), &bases[size_t(rank)]);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bases.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    const MPI_Aint base = bases[size_t(right())];
    EXPECT(MPI_Put(sent.data(), 200, MPI_INT, right(), base, 200, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(right(), win) == MPI_SUCCESS);
    EXPECT(MPI_Get(got.data(), 190, MPI_INT, right(), base + 40, 190, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(right(), win) == MPI_SUCCESS);
    EXPECT(std::equal(got.begin(), got.begin() + 190, sent.begin() + 10) && got[190] == -1);
    const int at_once = MPI_Put(sent.data(), 201, MPI_INT, right(), base, 201, MPI_INT, win);
    const int late = MPI_Win_flush(right(), win);
    EXPECT(at_once == MPI_ERR_RMA_RANGE || late == MPI_ERR_RMA_RANGE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(memory[200] == -1);
    // Each range is detached as often as it was attached, those without a byte too.
    EXPECT(MPI_Win_attach(win, memory.data() + 50, 0) == MPI_SUCCESS);
    EXPECT(MPI_Win_detach(win, memory.data()) == MPI_SUCCESS);
    EXPECT(MPI_Win_detach(win, memory.data() + 100) == MPI_SUCCESS);
    EXPECT(MPI_Win_detach(win, memory.data() + 50) == MPI_SUCCESS);
    for (const int at : {0, 50, 100, 150}) EXPECT(MPI_Win_detach(win, memory.data() + at) == MPI_ERR_BASE);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // On several hosts.
    const bool apart = argc > 1 && std::strcmp(argv[1], "apart") == 0;
    for (const Flavor flavor : {Flavor::create, Flavor::allocate, Flavor::shared, Flavor::dynamic}) {
        if (apart && flavor == Flavor::shared) continue;
        for (const int n : {1, 100, 3000, 100000}) put_and_get(flavor, n);
        for (const int n : {1, 100, 20000}) derived(flavor, n);
        accumulates(flavor);
        swaps(flavor);
        wide(flavor);
        general(flavor);
        for (const int n : {1, 3000, 50000}) requests(flavor, n);
    }
    if (!apart) shared_memory();
    attributes();
    refusals();
    for (const int n : {1, 5000}) late_errors(n);
    adjacent_ranges();
    return report();
}
