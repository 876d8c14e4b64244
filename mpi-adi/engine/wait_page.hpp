// SPDX-License-Identifier: BSD-2-Clause
// What a process shows of its waits to permitted readers (cmpiinfo --job): a memfd of one page, found as
// /proc/PID/fd/N -> /memfd:viaduct-cmpi. A wait is written there once, when it has become long: when the waiting thread
// begins to sleep, or has looked a thousand times. So a message that comes in time costs nothing. A program that asks
// by itself (MPI_Test, MPI_Iprobe) waits, too, once the answer was no a thousand times in a row.
//
// Written by that process alone, never by a reader.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::mpi {

inline constexpr char kWaitPageName[] = "viaduct-cmpi";
inline constexpr uint64_t kWaitPageMagic = 0x0353'5449'4157'504d;  // "MPWAITS" and a 3
inline constexpr int kMostPeers = 32;

enum class WaitKind : uint32_t { other, send, receive, probe, collective, window, finalize, buffer };

// Of one waiting thread.
struct WaitRecord {
    std::atomic<uint32_t> turn;  // odd: a thread waits; grows with each wait, so that a reader knows it again
    uint32_t kind;
    int64_t since;  // CLOCK_MONOTONIC, ns
    uint64_t context;
    int64_t bytes;
    int32_t tag;    // MPI_ANY_TAG, or below that: none
    int32_t any;    // 1: one of the peers is enough
    int32_t count;  // of the peers; more than kMostPeers: the first of them
    int32_t peers[kMostPeers];  // ranks of the job; -1: a process of another job
    int32_t threads;  // 1: other threads of the process may be in MPI, too, or come to it
    // 0: a thread waits in a call. Else the program asks by itself, and the number grows each time: while it does not,
    // the program does something else.
    std::atomic<uint32_t> asks;
    char transport[16];
    char communicator[40];
};
inline constexpr int kWaitRecords = 12;

struct WaitPage {
    uint64_t magic;
    uint32_t pid;
    int32_t rank;
    int32_t size;
    uint32_t number;  // of the job: random
    // Passes over everything that may move, made by threads whose wait is shown and by the progress thread; each counts
    // when it is over. So does a sleep in which a module has moved something. A process that lies without a processor
    // makes none, whatever has come for it.
    std::atomic<uint32_t> idle_passes;  // nothing moved
    std::atomic<uint32_t> moving_passes;
    WaitRecord records[kWaitRecords];
};
static_assert(sizeof(WaitRecord) == 240 && sizeof(WaitPage) <= 4096);

// Makes the page; without it everything works the same, unseen.
void open_wait_page();
// The progress thread has moved something, or a module has in its sleep.
void count_moving_pass();

// What a thread waits for, filled when a wait has become long.
struct Awaited {
    WaitKind kind = WaitKind::other;
    bool any = false;
    int tag = -2;
    uint64_t context = 0;
    int64_t bytes = 0;
    const char* transport = "";
    int count = 0;
    int peers[kMostPeers] = {};

    void add(int world_rank) {
        if (count < kMostPeers) peers[count] = world_rank;
        count++;
    }
};

// A wait that may be shown; it ends with the object.
class ShownWait {
public:
    ShownWait() = default;
    ShownWait(const ShownWait&) = delete;
    ShownWait& operator=(const ShownWait&) = delete;
    ~ShownWait() {
        if (record_ != nullptr) [[unlikely]]
            end();
    }
    // The wait is over, though its thread may not run yet.
    void over() {
        if (record_ != nullptr) end();
        record_ = nullptr;
        asked_ = false;
    }
    // Once for each wait; `describe` fills an Awaited.
    template <class Describe>
    void show(Describe&& describe) {
        if (asked_) return;
        asked_ = true;
        Awaited what;
        describe(what);
        write(what);
    }
    // The same after a pass of this thread that has moved nothing.
    template <class Describe>
    void found_nothing(Describe&& describe) {
        if (record_ != nullptr) count_idle_pass();
        show(describe);
    }
    // After a pass of this thread that has moved something.
    void moved() {
        if (record_ != nullptr) [[unlikely]]
            count_moving_pass();
    }

private:
    void write(const Awaited& what);
    void end();
    static void count_idle_pass();

    WaitRecord* record_ = nullptr;
    bool asked_ = false;
};

// The wait of a program that polls (MPI_Test, MPI_Iprobe). The record stays after a successful poll; its count stops.
class ShownAsking {
public:
    // `times`: polls without success in a row. A program may poll several requests in turn: the record then shows each
    // of them at times, because kManyTimes is a prime number.
    template <class Describe>
    void found_nothing(unsigned times, Describe&& describe) {
        if (times < kManyTimes) [[likely]]
            return;
        if (times % kManyTimes == 0) {
            Awaited what;
            describe(what);
            write(what, times == kManyTimes);
        }
        count();
    }

private:
    static constexpr unsigned kManyTimes = 1009;

    void write(const Awaited& what, bool is_new);
    void count();

    WaitRecord* record_ = nullptr;
};
// The one record of this process for polling.
extern ShownAsking shown_asking;

}  // namespace viaduct::mpi
