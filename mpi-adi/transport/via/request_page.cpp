// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/request_page.hpp"

#include <algorithm>
#include <bit>

namespace viaduct::via {

void RequestPage::open() {
    if (notes_ != nullptr) return;
    memory_ = offer_memory("viaduct-requests", sizeof(RequestNotes), &offer_);
    if (memory_.valid()) notes_ = reinterpret_cast<RequestNotes*>(memory_.data());
}

void RequestPage::close() {
    memory_.reset();
    offer_ = {};
    notes_ = nullptr;
    seen_ = 0;
}

// The count is read first: a note that is missed now is behind a count that differs from the one seen.
std::vector<uint32_t> RequestPage::take(size_t ranks) {
    std::vector<uint32_t> found;
    if (!is_noted()) return found;
    seen_ = notes_->count.load(std::memory_order_acquire);
    const size_t most = std::min<size_t>(ranks, kMostRanks);
    for (size_t word = 0; word * 64 < most; ++word) {
        const size_t left = most - word * 64;
        const uint64_t wanted = left < 64 ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
        if ((notes_->asked[word].load(std::memory_order_relaxed) & wanted) == 0) continue;
        uint64_t bits = notes_->asked[word].fetch_and(~wanted, std::memory_order_acquire) & wanted;
        for (; bits != 0; bits &= bits - 1)
            found.push_back(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits)));
    }
    return found;
}

Opened RequestPage::note(const MemoryOffer& offer, uint32_t rank) {
    if (rank >= kMostRanks) return Opened::not_offered;
    Segment page;
    const Opened opened = open_offered(offer, sizeof(RequestNotes), &page);
    if (opened != Opened::ok) return opened;
    auto& notes = *reinterpret_cast<RequestNotes*>(page.data());
    notes.asked[rank / 64].fetch_or(uint64_t{1} << (rank % 64), std::memory_order_release);
    notes.count.fetch_add(1, std::memory_order_release);
    return Opened::ok;
}

}  // namespace viaduct::via
