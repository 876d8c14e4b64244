// SPDX-License-Identifier: BSD-2-Clause
// Memory that the processes of a window on one host share: a line of locks for each of them, then each one's
// part. One of them makes it, the others open it through /proc; it has no name, so nothing stays when they
// die.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/shm/segment.hpp"
#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/ranges.hpp"

namespace viaduct::mpi::rma {

// The lock of one member's window, of MPI_Win_lock, for windows whose members all reach it. Writers
// that wait keep new readers out, so that they get their turn.
class LockWord {
public:
    // True when the lock is held now. A writer that was refused once says so in its further tries.
    [[nodiscard]] bool try_shared() {
        uint64_t seen = word_.load(std::memory_order_relaxed);
        return seen < kWriter && word_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire);
    }
    [[nodiscard]] bool try_exclusive() {
        uint64_t seen = word_.load(std::memory_order_relaxed);
        return (seen & (kWaiting - 1)) == 0 &&
               word_.compare_exchange_strong(seen, seen | kWriter, std::memory_order_acquire);
    }
    void begin_waiting() { word_.fetch_add(kWaiting, std::memory_order_relaxed); }
    void end_waiting() { word_.fetch_sub(kWaiting, std::memory_order_relaxed); }
    void release_shared() { word_.fetch_sub(1, std::memory_order_release); }
    void release_exclusive() { word_.fetch_sub(kWriter, std::memory_order_release); }

private:
    static constexpr uint64_t kWriter = uint64_t{1} << 32;   // below: how many readers
    static constexpr uint64_t kWaiting = uint64_t{1} << 33;  // from here: how many writers wait
    std::atomic<uint64_t> word_{0};
};

struct alignas(128) MemberLine {
    LockWord lock;
    alignas(64) Guard guard;
    RangesCard attached;  // of a dynamic window whose members reach each other by system calls
};

// Where all members meet. Used again as soon as the last one has come.
struct alignas(128) Meeting {
    std::atomic<unsigned> arrived{0};
    std::atomic<unsigned> round{0};
};

class SharedRegion {
public:
    // `sizes` of the parts in bytes; each begins a page when `apart`, else right behind the one before.
    SharedRegion(const std::vector<int64_t>& sizes, bool apart);

    // The process that makes it tells pid and descriptor to the others. False when there is no such memory.
    [[nodiscard]] bool create();
    [[nodiscard]] bool open(int pid, int fd);
    int fd() const { return segment_.fd(); }
    // Once all have opened it.
    void drop_fd() { segment_.drop_fd(); }

    MemberLine& line(size_t part) const { return lines_[part]; }
    Meeting& meeting() const { return *reinterpret_cast<Meeting*>(segment_.data()); }
    size_t parts() const { return offsets_.size(); }
    char* part(size_t number) const { return reinterpret_cast<char*>(segment_.data()) + offsets_[number]; }

private:
    void place();

    std::vector<size_t> offsets_;
    size_t bytes_;
    Segment segment_;
    MemberLine* lines_ = nullptr;
};

}  // namespace viaduct::mpi::rma
