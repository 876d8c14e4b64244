// SPDX-License-Identifier: BSD-2-Clause
// Memory that the processes of a window on one host share: a line of locks for each of them, then each one's
// part. One of them makes it and offers it to the others (core/process/offered_memory.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/process/offered_memory.hpp"
#include "core/shm/segment.hpp"
#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/foreign_scope.hpp"
#include "mpi-adi/engine/rma/ranges.hpp"

namespace viaduct::mpi::rma {

// The lock of one member's window, of MPI_Win_lock, for windows whose members all reach it. Writers
// that wait keep new readers out, so that they get their turn.
class LockWord {
public:
    // True when the lock is held now. A writer that was refused once says so in its further tries.
    [[nodiscard]] bool try_shared() {
        uint64_t seen = word_.load(std::memory_order_relaxed);
        return admits_readers(seen) && word_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire);
    }
    [[nodiscard]] bool try_exclusive() {
        uint64_t seen = word_.load(std::memory_order_relaxed);
        return admits_writer(seen) &&
               word_.compare_exchange_strong(seen, with_writer(seen), std::memory_order_acquire);
    }
    void begin_waiting() { word_.fetch_add(kWaiting, std::memory_order_relaxed); }
    void end_waiting() { word_.fetch_sub(kWaiting, std::memory_order_relaxed); }
    void release_shared() { word_.fetch_sub(1, std::memory_order_release); }
    void release_exclusive() { word_.fetch_sub(kWriter, std::memory_order_release); }

    // The same steps for members that reach the word by their NIC (remote_words.cpp).
    static constexpr uint64_t kWriter = uint64_t{1} << 32;   // below: how many readers
    static constexpr uint64_t kWaiting = uint64_t{1} << 33;  // from here: how many writers wait
    static constexpr bool admits_readers(uint64_t seen) { return seen < kWriter; }
    static constexpr bool admits_writer(uint64_t seen) { return (seen & (kWaiting - 1)) == 0; }
    static constexpr uint64_t with_writer(uint64_t seen) { return seen | kWriter; }

private:
    std::atomic<uint64_t> word_{0};
};

struct alignas(128) MemberLine {
    LockWord lock;
    alignas(64) Guard guard;
    // Of windows whose members reach each other by system calls.
    RangesCard attached;           // of a dynamic one
    ForeignAccessWords accesses;
};

// Where all members meet. Used again as soon as the last one has come.
struct alignas(128) Meeting {
    std::atomic<unsigned> arrived{0};
    std::atomic<unsigned> round{0};
};

class SharedRegion {
    struct alignas(128) Head {
        OfferedMark mark;
    };

public:
    // `sizes` of the parts in bytes; each begins a page when `apart`, else right behind the one before.
    SharedRegion(const std::vector<int64_t>& sizes, bool apart);

    // The process that makes it tells the others its offer. False when there is no such memory.
    [[nodiscard]] bool create(MemoryOffer* offer);
    [[nodiscard]] bool open(const MemoryOffer& offer);
    // Once all have opened it.
    void drop_fd() { segment_.drop_fd(); }

    MemberLine& line(size_t part) const { return lines_[part]; }
    Meeting& meeting() const { return *reinterpret_cast<Meeting*>(segment_.data() + sizeof(Head)); }
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
