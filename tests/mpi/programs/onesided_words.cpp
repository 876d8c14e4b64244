// SPDX-License-Identifier: BSD-2-Clause
// Small one-sided operations take a short way where memory is shared, all others a long one. Here both meet,
// from all ranks at once, on the same words, and nothing may be lost; and what is refused, or has nothing to
// do, is the same by either way: in windows that are allocated or shared, and in created ones, which have the
// long way only.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

// Of 16 bytes, which the processor adds only where they are aligned.
__extension__ using Quad = __float128;

int rank, size;
enum class Flavor { create, allocate, shared };

// Bytes at each member, zeroed, with displacements in units of `unit`.
class Window {
public:
    Window(Flavor flavor, MPI_Aint bytes, int unit) : own_(static_cast<size_t>(bytes)) {
        if (flavor == Flavor::create) {
            base = own_.data();
            MPI_Win_create(base, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else if (flavor == Flavor::allocate) {
            MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        } else {
            MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        }
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        std::memset(base, 0, static_cast<size_t>(bytes));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Window() { EXPECT(MPI_Win_free(&win) == MPI_SUCCESS); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    template <typename T>
    T at(size_t byte) const {
        T value;
        std::memcpy(&value, base + byte, sizeof value);
        return value;
    }

    char* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;

private:
    std::vector<char> own_;
};

// One more at a rank, by one of the ways there are; the same item in other words goes the long way.
template <typename T>
void add_one(MPI_Win win, MPI_Datatype type, MPI_Datatype wrapped, MPI_Aint at, int way, int to = 0) {
    static const T one = 1;
    static T old;  // in use until the flush
    MPI_Request request = MPI_REQUEST_NULL;
    switch (way) {
        case 0:
            MPI_Fetch_and_op(&one, &old, type, to, at, MPI_SUM, win);
            break;
        case 1:
            MPI_Accumulate(&one, 1, type, to, at, 1, type, MPI_SUM, win);
            break;
        case 2:
            MPI_Accumulate(&one, 1, wrapped, to, at, 1, type, MPI_SUM, win);
            break;
        case 3:
            MPI_Get_accumulate(&one, 1, type, &old, 1, type, to, at, 1, wrapped, MPI_SUM, win);
            break;
        default:
            MPI_Raccumulate(&one, 1, type, to, at, 1, type, MPI_SUM, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// At a word, and at one that lies across its alignment, which has other ways of its own.
template <typename T>
void sums(Flavor flavor, MPI_Datatype type) {
    constexpr int kRounds = 400;
    const MPI_Aint places[2] = {16, 41};
    Window window(flavor, 64, 1);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, type, &wrapped);
    MPI_Type_commit(&wrapped);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < kRounds; i++)
        for (const MPI_Aint at : places) {
            add_one<T>(window.win, type, wrapped, at, (i + rank) % 5);
            MPI_Win_flush(0, window.win);
        }
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&wrapped);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        for (const MPI_Aint at : places) EXPECT(window.at<T>(size_t(at)) == T(kRounds * size));
    MPI_Barrier(MPI_COMM_WORLD);
}

// Several items in one operation, by operators of one step and of many, beside the long way.
void several(Flavor flavor) {
    constexpr int kRounds = 200, kItems = 5;
    Window window(flavor, 3 * kItems * 8, 8);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(kItems, MPI_INT64_T, &wrapped);
    MPI_Type_commit(&wrapped);
    const int64_t own_bit = int64_t{1} << rank;
    int64_t add[kItems], bits[kItems], most[kItems];
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < kRounds; i++) {
        for (int k = 0; k < kItems; k++) {
            add[k] = k + 1;
            bits[k] = own_bit << 8 * k;
            most[k] = 1000 * rank + i + k;
        }
        const bool is_long = (i + rank) % 2 != 0;
        const auto change = [&](const int64_t* from, int first, MPI_Op op) {
            if (is_long)
                MPI_Accumulate(from, 1, wrapped, 0, first, 1, wrapped, op, window.win);
            else
                MPI_Accumulate(from, kItems, MPI_INT64_T, 0, first, kItems, MPI_INT64_T, op, window.win);
        };
        change(add, 0, MPI_SUM);
        change(bits, kItems, MPI_BXOR);
        change(most, 2 * kItems, MPI_MAX);
        MPI_Win_flush(0, window.win);
    }
    // Once more, so that every rank's bit has been turned an odd number of times.
    MPI_Accumulate(bits, kItems, MPI_INT64_T, 0, kItems, kItems, MPI_INT64_T, MPI_BXOR, window.win);
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&wrapped);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        for (int k = 0; k < kItems; k++) {
            const auto item = [&](int n) { return window.at<int64_t>(8 * size_t(n)); };
            EXPECT(item(k) == int64_t{k + 1} * kRounds * size);
            EXPECT(item(kItems + k) == ((int64_t{1} << size) - 1) << 8 * k);
            EXPECT(item(2 * kItems + k) == 1000 * (size - 1) + kRounds - 1 + k);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Tickets drawn by compare-and-swap and by fetch-and-op from one counter: each is drawn once.
template <typename T>
void tickets(Flavor flavor, MPI_Datatype type) {
    constexpr int kRounds = 20;
    Window window(flavor, 8, 1);
    std::vector<int> drawn(size_t(2 * kRounds * size));
    T value = 0, next = 0, old = 0;
    const T one = 1;
    const auto draw = [&] {
        EXPECT(old >= 0 && size_t(old) < drawn.size());
        if (old >= 0 && size_t(old) < drawn.size()) drawn[size_t(old)]++;
    };
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < kRounds; i++) {
        MPI_Fetch_and_op(&one, &old, type, 0, 0, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
        draw();
        MPI_Fetch_and_op(nullptr, &old, type, 0, 0, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        do {
            value = old;
            next = T(value + 1);
            MPI_Compare_and_swap(&next, &value, &old, type, 0, 0, window.win);
            MPI_Win_flush(0, window.win);
        } while (old != value);
        draw();
    }
    MPI_Win_unlock_all(window.win);
    MPI_Allreduce(MPI_IN_PLACE, drawn.data(), int(drawn.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (const int times : drawn) EXPECT(times == 1);
}

// Bytes of every length from every place to every other, and none beside them.
void bytes(Flavor flavor) {
    constexpr int kBytes = 96;
    Window window(flavor, kBytes, 1);
    const int to = (rank + 1) % size;
    char out[kBytes], in[kBytes], all[kBytes], expected[kBytes] = {};
    for (int i = 0; i < kBytes; i++) out[i] = char(rank * 31 + i + 1);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
    for (int length = 1; length <= 40; length++) {
        const int from = length % 9, at = length * 5 % 17;
        EXPECT(MPI_Put(out + from, length, MPI_BYTE, to, at, length, MPI_BYTE, window.win) == MPI_SUCCESS);
        MPI_Win_flush(to, window.win);
        std::memcpy(expected + at, out + from, size_t(length));
        std::memset(in, 0x55, sizeof in);
        EXPECT(MPI_Get(in + from, length, MPI_BYTE, to, at, length, MPI_BYTE, window.win) == MPI_SUCCESS);
        EXPECT(MPI_Get(all, kBytes, MPI_CHAR, to, 0, kBytes, MPI_CHAR, window.win) == MPI_SUCCESS);
        MPI_Win_flush(to, window.win);
        EXPECT(std::memcmp(in + from, out + from, size_t(length)) == 0);
        EXPECT((from == 0 || in[from - 1] == 0x55) && in[from + length] == 0x55);
        EXPECT(std::memcmp(all, expected, sizeof all) == 0);
    }
    MPI_Win_unlock(to, window.win);
}

// What one origin does to one word happens in its order, by whatever way.
void order(Flavor flavor) {
    Window window(flavor, size * 8, 8);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, MPI_INT64_T, &wrapped);
    MPI_Type_commit(&wrapped);
    MPI_Win_lock_all(0, window.win);
    for (int64_t i = 1; i <= 100; i++) {
        const int64_t first = i * 7, second = i, third = 3;
        int64_t old = -1;
        MPI_Accumulate(&first, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, MPI_REPLACE, window.win);
        MPI_Accumulate(&second, 1, wrapped, 0, rank, 1, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Accumulate(&third, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, MPI_PROD, window.win);
        MPI_Fetch_and_op(nullptr, &old, MPI_INT64_T, 0, rank, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        EXPECT(old == (i * 7 + i) * 3);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&wrapped);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Hundreds of answers under way at a time, of few bytes and of many in turns: each comes to the operation
// that it belongs to, and they took effect in their order.
void answers(Flavor flavor) {
    constexpr int kRounds = 300, kItems = 100;
    Window window(flavor, size * kItems * 8, 8);
    const int to = (rank + 1) % size;
    const MPI_Aint at = rank * kItems;
    const std::vector<int64_t> ones(kItems, 1);
    std::vector<int64_t> drawn(kRounds, -1), seen(kRounds, -1), many(kRounds * kItems, -1);
    std::vector<MPI_Request> requests;
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < kRounds; i++) {
        if (i % 7 == 3)
            MPI_Get_accumulate(ones.data(), kItems, MPI_INT64_T, &many[i * kItems], kItems, MPI_INT64_T, to,
                               at, kItems, MPI_INT64_T, MPI_SUM, window.win);
        else
            MPI_Fetch_and_op(ones.data(), &drawn[i], MPI_INT64_T, to, at, MPI_SUM, window.win);
        if (i % 5 == 1) {
            requests.emplace_back();
            MPI_Rget_accumulate(nullptr, 0, MPI_INT64_T, &seen[i], 1, MPI_INT64_T, to, at, 1, MPI_INT64_T,
                                MPI_NO_OP, window.win, &requests.back());
        }
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 1; i < kRounds; i += 5) EXPECT(seen[i] == int64_t(i) + 1);
    MPI_Win_flush(to, window.win);
    for (size_t i = 0; i < kRounds; i++) EXPECT((i % 7 == 3 ? many[i * kItems] : drawn[i]) == int64_t(i));
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// The four operations of one int with these arguments; all of them shall answer this.
void all_answer(MPI_Win win, int to, MPI_Aint at, int code) {
    const int x = 1;
    int y = 0;
    EXPECT(MPI_Put(&x, 1, MPI_INT, to, at, 1, MPI_INT, win) == code);
    EXPECT(MPI_Get(&y, 1, MPI_INT, to, at, 1, MPI_INT, win) == code);
    EXPECT(MPI_Accumulate(&x, 1, MPI_INT, to, at, 1, MPI_INT, MPI_SUM, win) == code);
    EXPECT(MPI_Fetch_and_op(&x, &y, MPI_INT, to, at, MPI_SUM, win) == code);
    EXPECT(MPI_Compare_and_swap(&x, &x, &y, MPI_INT, to, at, win) == code);
    EXPECT(y == 0);
}

void refusals(Flavor flavor) {
    constexpr MPI_Aint kFar = std::numeric_limits<MPI_Aint>::max() / 2;
    Window window(flavor, 16, 4);
    MPI_Win win = window.win;
    const int to = (rank + 1) % size;
    int x = 1, y = 0;
    all_answer(win, to, 0, MPI_ERR_RMA_SYNC);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
    if (size > 1) all_answer(win, rank, 0, MPI_ERR_RMA_SYNC);
    all_answer(win, -7, 0, MPI_ERR_RANK);
    all_answer(win, size, 0, MPI_ERR_RANK);
    for (const MPI_Aint at : {MPI_Aint{4}, MPI_Aint{1} << (5 * sizeof(MPI_Aint)), kFar})
        all_answer(win, to, at, MPI_ERR_RMA_RANGE);
    for (const MPI_Aint at : {MPI_Aint{-1}, -kFar}) all_answer(win, to, at, MPI_ERR_DISP);
    EXPECT(MPI_Put(&x, 1, MPI_INT64_T, to, 3, 1, MPI_INT64_T, win) == MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put_c(&x, MPI_Count{1} << 62, MPI_INT, to, 0, MPI_Count{1} << 62, MPI_INT, win) ==
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Accumulate(&x, 5, MPI_INT, to, 0, 5, MPI_INT, MPI_SUM, win) == MPI_ERR_RMA_RANGE);

    EXPECT(MPI_Put(nullptr, 1, MPI_INT, to, 0, 1, MPI_INT, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Get(nullptr, 1, MPI_INT, to, 0, 1, MPI_INT, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Accumulate(nullptr, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Fetch_and_op(nullptr, &y, MPI_INT, to, 0, MPI_SUM, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Fetch_and_op(&x, nullptr, MPI_INT, to, 0, MPI_SUM, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Compare_and_swap(nullptr, &x, &y, MPI_INT, to, 0, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Compare_and_swap(&x, nullptr, &y, MPI_INT, to, 0, win) == MPI_ERR_BUFFER);
    EXPECT(MPI_Compare_and_swap(&x, &x, nullptr, MPI_INT, to, 0, win) == MPI_ERR_BUFFER);

    const auto no_type = static_cast<MPI_Datatype>(MPI_INT + 0xc3);  // no type has this handle
    EXPECT(MPI_Put(&x, 1, no_type, to, 0, 1, no_type, win) == MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&x, 1, MPI_DATATYPE_NULL, to, 0, 1, MPI_DATATYPE_NULL, MPI_SUM, win) ==
           MPI_ERR_TYPE);
    EXPECT(MPI_Compare_and_swap(&x, &x, &y, MPI_FLOAT, to, 0, win) == MPI_ERR_TYPE);
    EXPECT(MPI_Put(&x, -1, MPI_INT, to, 0, -1, MPI_INT, win) == MPI_ERR_COUNT);
    EXPECT(MPI_Accumulate(&x, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_NO_OP, win) == MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&x, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_OP_NULL, win) == MPI_ERR_OP);
    EXPECT(MPI_Accumulate(&x, 1, MPI_FLOAT, to, 0, 1, MPI_FLOAT, MPI_BOR, win) == MPI_ERR_OP);
    EXPECT(MPI_Fetch_and_op(&x, &y, MPI_INT, to, 0, MPI_MAXLOC, win) == MPI_ERR_OP);
    for (const bool wide : {false, true}) {
        MPI_Op own;
        if (wide)
            MPI_Op_create_c([](void*, void*, MPI_Count*, MPI_Datatype*) {}, 1, &own);
        else
            MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own);
        EXPECT(MPI_Accumulate(&x, 1, MPI_INT, to, 0, 1, MPI_INT, own, win) == MPI_ERR_OP);
        EXPECT(MPI_Accumulate(&x, 0, MPI_INT, to, 0, 0, MPI_INT, own, win) == MPI_ERR_OP);
        EXPECT(MPI_Fetch_and_op(&x, &y, MPI_INT, MPI_PROC_NULL, 0, own, win) == MPI_ERR_OP);
        MPI_Op_free(&own);
    }

    // Nothing to do is done, and none of the above has done anything.
    all_answer(win, MPI_PROC_NULL, 99, MPI_SUCCESS);
    EXPECT(MPI_Put(&x, 0, MPI_INT, to, 4, 0, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Get(nullptr, 0, MPI_INT, to, 0, 0, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Accumulate(nullptr, 0, MPI_INT, to, 0, 0, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
    MPI_Win_unlock(to, win);
    all_answer(win, to, 0, MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < 4; i++) EXPECT(window.at<int>(4 * i) == 0);
    EXPECT(y == 0);

    // An operation makes a fence's epoch one, by whatever way it goes.
    MPI_Win_fence(0, win);
    EXPECT(MPI_Put(&x, 1, MPI_INT, to, 2, 1, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win) == MPI_ERR_RMA_SYNC);
    MPI_Win_fence(0, win);
    EXPECT(MPI_Fetch_and_op(&x, &y, MPI_INT, to, 2, MPI_SUM, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_lock_all(0, win) == MPI_ERR_RMA_SYNC);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EXPECT(y == 1 && window.at<int>(8) == 2);
    all_answer(win, MPI_PROC_NULL, 0, MPI_SUCCESS);
    EXPECT(MPI_Put(&x, 1, MPI_INT, to, 0, 1, MPI_INT, win) == MPI_ERR_RMA_SYNC);
}

// Between post and wait, at every member from every member; then the same words once more under a lock, which
// must find all of it done.
void exposed(Flavor flavor) {
    constexpr int kRounds = 50;
    Window window(flavor, 4 * 8, 8);
    MPI_Group all;
    MPI_Win_get_group(window.win, &all);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, MPI_INT64_T, &wrapped);
    MPI_Type_commit(&wrapped);
    const int64_t one = 1, mark = 1000 + rank;
    std::vector<int64_t> old(static_cast<size_t>(size));
    for (int i = 0; i < kRounds; i++) {
        EXPECT(MPI_Win_post(all, 0, window.win) == MPI_SUCCESS);
        EXPECT(MPI_Win_start(all, 0, window.win) == MPI_SUCCESS);
        for (int to = 0; to < size; to++) {
            MPI_Accumulate(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
            MPI_Accumulate(&one, 1, wrapped, to, 0, 1, wrapped, MPI_SUM, window.win);
            MPI_Fetch_and_op(&one, &old[size_t(to)], MPI_INT64_T, to, 1, MPI_SUM, window.win);
            if (to == (rank + i) % size) MPI_Put(&mark, 1, MPI_INT64_T, to, 2, 1, MPI_INT64_T, window.win);
        }
        EXPECT(MPI_Win_complete(window.win) == MPI_SUCCESS);
        for (const int64_t seen : old) EXPECT(seen >= int64_t{i} * size && seen < int64_t{i + 1} * size);
        EXPECT(MPI_Win_wait(window.win) == MPI_SUCCESS);
        EXPECT(window.at<int64_t>(0) == int64_t{i + 1} * 2 * size);
        EXPECT(window.at<int64_t>(8) == int64_t{i + 1} * size);
        EXPECT(window.at<int64_t>(16) == 1000 + (rank + size - i % size) % size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const int to = (rank + 1) % size;
    int64_t got = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
    MPI_Accumulate(&one, 1, wrapped, to, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
    MPI_Win_flush(to, window.win);
    MPI_Fetch_and_op(nullptr, &got, MPI_INT64_T, to, 0, MPI_NO_OP, window.win);
    MPI_Win_unlock(to, window.win);
    EXPECT(got == int64_t{kRounds} * 2 * size + 1);
    MPI_Type_free(&wrapped);
    MPI_Group_free(&all);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Pairs of a value and a place: the largest and the smallest of all, by the short and by the long way.
template <typename T>
void pairs(Flavor flavor, MPI_Datatype type) {
    struct Pair {
        T value;
        int place;
    };
    constexpr int kRounds = 100;
    Window window(flavor, 2 * sizeof(Pair), 1);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, type, &wrapped);
    MPI_Type_commit(&wrapped);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < kRounds; i++) {
        const Pair high{T(i * size + rank), rank}, low{T(-(i * size + rank)), 100 + rank};
        Pair seen{};
        const MPI_Datatype from = (i + rank) % 2 == 0 ? type : wrapped;
        MPI_Accumulate(&high, 1, from, 0, 0, 1, type, MPI_MAXLOC, window.win);
        MPI_Accumulate(&low, 1, from, 0, sizeof(Pair), 1, type, MPI_MINLOC, window.win);
        MPI_Get_accumulate(nullptr, 0, type, &seen, 1, type, 0, 0, 1, type, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        EXPECT(seen.value >= high.value && seen.place == int(seen.value) % size);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&wrapped);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const Pair high = window.at<Pair>(0), low = window.at<Pair>(sizeof(Pair));
        const int last = kRounds * size - 1;
        EXPECT(high.value == T(last) && high.place == size - 1);
        // The lowest of all is that of the last round and rank; with one process and no round before it, 0.
        EXPECT(low.value == T(-last) && (low.place == 100 + size - 1 || last == 0));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// A window without memory of its own, to which words are attached while it is used.
void attached() {
    constexpr int kRounds = 100, kPieces = 4;
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<int64_t> memory(kPieces * 8);
    std::vector<MPI_Aint> places(static_cast<size_t>(size));
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, MPI_INT64_T, &wrapped);
    MPI_Type_commit(&wrapped);
    MPI_Aint own = 0;
    MPI_Get_address(memory.data(), &own);
    MPI_Allgather(&own, 1, MPI_AINT, places.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int piece = 0; piece < kPieces; piece++) {
        int64_t* const words = memory.data() + 8 * piece;
        EXPECT(MPI_Win_attach(win, words, 8 * sizeof(int64_t)) == MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < kRounds; i++)
            for (int to = 0; to < size; to++) {
                const MPI_Aint at = MPI_Aint_add(places[size_t(to)], piece * 64 + 8);
                add_one<int64_t>(win, MPI_INT64_T, wrapped, at, (i + rank) % 5, to);
                MPI_Win_flush(to, win);
            }
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT(words[1] == int64_t{kRounds} * size && words[0] == 0 && words[2] == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT(MPI_Win_detach(win, words) == MPI_SUCCESS);
    }
    MPI_Win_unlock_all(win);
    MPI_Type_free(&wrapped);
    EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
}

// Several threads of each process at the same words, each with answers of its own.
void threads(Flavor flavor) {
    constexpr int kThreads = 3, kRounds = 200;
    Window window(flavor, 2 * 8, 8);
    MPI_Datatype wrapped;
    MPI_Type_contiguous(1, MPI_INT64_T, &wrapped);
    MPI_Type_commit(&wrapped);
    std::vector<int> drawn(size_t(kThreads * kRounds * size));
    std::vector<std::vector<int64_t>> tickets_of(kThreads);
    MPI_Win_lock_all(0, window.win);
    std::vector<std::thread> all;
    all.reserve(kThreads);
    for (int t = 0; t < kThreads; t++)
        all.emplace_back([&, t] {
            const int64_t one = 1;
            for (int i = 0; i < kRounds; i++) {
                int64_t ticket = -1;
                MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, 0, MPI_SUM, window.win);
                const MPI_Datatype from = (i + t) % 2 == 0 ? MPI_INT64_T : wrapped;
                MPI_Accumulate(&one, 1, from, 0, 1, 1, MPI_INT64_T, MPI_SUM, window.win);
                MPI_Win_flush(0, window.win);
                tickets_of[size_t(t)].push_back(ticket);
            }
        });
    for (std::thread& one : all) one.join();
    MPI_Win_unlock_all(window.win);
    for (const auto& tickets : tickets_of)
        for (const int64_t ticket : tickets) {
            EXPECT(ticket >= 0 && size_t(ticket) < drawn.size());
            if (ticket >= 0 && size_t(ticket) < drawn.size()) drawn[size_t(ticket)]++;
        }
    MPI_Allreduce(MPI_IN_PLACE, drawn.data(), int(drawn.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (const int times : drawn) EXPECT(times == 1);
    if (rank == 0) EXPECT(window.at<int64_t>(8) == int64_t{kThreads} * kRounds * size);
    MPI_Type_free(&wrapped);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Threads that access a member first at the same time, while another process has its lock: it is asked for, and
// given back, once for all of them.
void first_accesses() {
    constexpr int kThreads = 3;
    Window window(Flavor::create, 8, 8);
    const int64_t one = 1;
    int token = 0;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        for (int other = 1; other < size; other++)
            MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleeps: the threads ask for the lock
        MPI_Win_unlock(0, window.win);
    } else {
        MPI_Win_lock_all(0, window.win);
        std::atomic<int> begun = 0;
        std::vector<std::thread> all;
        all.reserve(kThreads);
        for (int t = 0; t < kThreads; t++)
            all.emplace_back([&] {
                begun++;
                MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
            });
        while (begun != kThreads) std::this_thread::yield();
        MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        for (std::thread& thread : all) thread.join();
        MPI_Win_unlock_all(window.win);
    }
    // Not to be had as long as another process has any of it.
    int64_t sum = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    MPI_Get(&sum, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win);
    MPI_Win_unlock(0, window.win);
    EXPECT(sum == int64_t{kThreads} * (size - 1));
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    const bool with_threads = argc > 1 && std::strcmp(argv[1], "threads") == 0;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // On several hosts.
    const bool apart = argc > 1 && std::strcmp(argv[1], "apart") == 0;
    for (const Flavor flavor : {Flavor::create, Flavor::allocate, Flavor::shared}) {
        if (apart && flavor == Flavor::shared) continue;
        sums<int8_t>(flavor, MPI_INT8_T);
        sums<uint16_t>(flavor, MPI_UINT16_T);
        sums<int32_t>(flavor, MPI_INT);
        sums<int64_t>(flavor, MPI_LONG);
        sums<float>(flavor, MPI_FLOAT);
        sums<double>(flavor, MPI_DOUBLE);
        sums<long double>(flavor, MPI_LONG_DOUBLE);
        sums<Quad>(flavor, MPI_REAL16);
        several(flavor);
        tickets<int16_t>(flavor, MPI_INT16_T);
        tickets<int32_t>(flavor, MPI_INT);
        tickets<int64_t>(flavor, MPI_INT64_T);
        bytes(flavor);
        order(flavor);
        answers(flavor);
        refusals(flavor);
        exposed(flavor);
        pairs<int>(flavor, MPI_2INT);
        pairs<double>(flavor, MPI_DOUBLE_INT);
        if (with_threads) threads(flavor);
    }
    attached();
    if (with_threads) first_accesses();
    return report();
}
