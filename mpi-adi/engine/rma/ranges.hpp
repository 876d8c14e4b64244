// SPDX-License-Identifier: BSD-2-Clause
// The memory that a process has attached to a dynamic window: ranges that do not meet. Other processes of the host read
// the list in its owner's memory, where a card in shared memory says that it lies, in which version.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/process/foreign_memory.hpp"

namespace viaduct::mpi::rma {

// Where the list lies in its owner's memory. The version is odd while the owner changes it.
struct RangesCard {
    std::atomic<uint64_t> version{0};
    std::atomic<uint64_t> address{0};
    std::atomic<uint64_t> count{0};
};

class Ranges {
public:
    // False: it meets another one.
    bool add(char* start, MPI_Aint bytes);
    // False: none begins there.
    bool remove(const char* start);
    // Whether all these bytes are in ranges; no bytes always are.
    bool holds(const char* from, int64_t bytes) const;
    // The list of another process as it is now. After an error it is not current: unreached, its memory cannot be read
    // there, or the card names more ranges than a process can have.
    ForeignMemory::Result fetch(const RangesCard& card, const ForeignMemory& memory);
    // Whether it is the version of that card.
    bool is_current(const RangesCard& card) const { return version_ == card.version.load(std::memory_order_acquire); }

private:
    friend class RangesChange;
    struct Range {
        char* start;
        MPI_Aint bytes;
    };

    static constexpr uint64_t kNoVersion = ~uint64_t{0};  // odd: no card keeps it

    std::vector<Range> all_;  // by address
    uint64_t version_ = 0;
};

// While the owner changes the list; the end of it tells the others. Without a card no other process reads it.
class RangesChange {
public:
    RangesChange(RangesCard* card, const Ranges& ranges);
    ~RangesChange();
    RangesChange(const RangesChange&) = delete;
    RangesChange& operator=(const RangesChange&) = delete;

private:
    RangesCard* const card_;
    const Ranges& ranges_;
};

}  // namespace viaduct::mpi::rma
