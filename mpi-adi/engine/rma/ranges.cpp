// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/rma/ranges.hpp"

#include <algorithm>

namespace viaduct::mpi::rma {

bool Ranges::add(char* start, MPI_Aint bytes) {
    const auto next = std::lower_bound(all_.begin(), all_.end(), start,
                                       [](const Range& range, const char* at) { return range.start < at; });
    if (next != all_.end() && next->start - start < bytes) return false;
    if (next != all_.begin() && start - std::prev(next)->start < std::prev(next)->bytes) return false;
    all_.insert(next, {start, bytes});
    return true;
}

bool Ranges::remove(const char* start) {
    return std::erase_if(all_, [&](const Range& range) { return range.start == start; }) != 0;
}

bool Ranges::holds(const char* from, int64_t bytes) const {
    if (bytes == 0) return true;
    auto after = std::upper_bound(all_.begin(), all_.end(), from,
                                  [](const char* at, const Range& range) { return at < range.start; });
    if (after == all_.begin()) return false;
    const Range& first = *std::prev(after);
    if (from - first.start > first.bytes) return false;
    // An operation may cross from one range into the next, where they meet.
    const char* end = first.start + first.bytes;
    for (; bytes > end - from && after != all_.end() && after->start == end; ++after) end += after->bytes;
    return bytes <= end - from;
}

ForeignMemory::Result Ranges::fetch(const RangesCard& card, const ForeignMemory& memory) {
    using Result = ForeignMemory::Result;
    constexpr uint64_t kMost = uint64_t{1} << 24;
    version_ = kNoVersion;  // until all of the list is there
    while (true) {
        const uint64_t before = card.version.load(std::memory_order_acquire);
        const uint64_t count = card.count.load(std::memory_order_relaxed);
        const iovec from{reinterpret_cast<void*>(card.address.load(std::memory_order_relaxed)), count * sizeof(Range)};
        Result seen = Result::unreached;
        if (before % 2 == 0 && count <= kMost) {
            all_.resize(count);
            seen = memory.read(all_.data(), {&from, 1});
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        if (before % 2 == 0 && card.version.load(std::memory_order_relaxed) == before) {
            if (seen == Result::ok) version_ = before;
            return seen;
        }
        // A list that its owner is changing is read again, while the owner is there.
        if (const Result there = memory.probe(); there != Result::ok) return there;
    }
}

RangesChange::RangesChange(RangesCard* card, const Ranges& ranges) : card_(card), ranges_(ranges) {
    if (card_ == nullptr) return;
    card_->version.fetch_add(1, std::memory_order_acq_rel);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

RangesChange::~RangesChange() {
    if (card_ == nullptr) return;
    card_->address.store(reinterpret_cast<uintptr_t>(ranges_.all_.data()), std::memory_order_relaxed);
    card_->count.store(ranges_.all_.size(), std::memory_order_relaxed);
    card_->version.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace viaduct::mpi::rma
