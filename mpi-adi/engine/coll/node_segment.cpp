// SPDX-License-Identifier: BSD-2-Clause
// See node_segment.hpp.
#include "mpi-adi/engine/coll/node_segment.hpp"

namespace viaduct::mpi::coll {
namespace {

constexpr size_t kLine = 128;
constexpr size_t kSmallStride = NodeSegment::kSmall + sizeof(NodeSegment::Note);
constexpr size_t kMostLarge = 64 << 10;
constexpr size_t kLeastLarge = 4 << 10;
constexpr size_t kLargeInAll = 2 << 20;  // one large buffer, as long as the parts are not the least
constexpr uint64_t kClaimed = ~uint64_t{0};

size_t to_line(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

bool is_partner(int one, int other, int members) {
    const auto power_of_two = [](int n) { return (n & (n - 1)) == 0; };
    const int ahead = (other - one + members) % members;
    return power_of_two(ahead) || power_of_two(members - ahead);
}

}  // namespace

size_t NodeSegment::large(int members) {
    size_t bytes = kMostLarge;
    while (bytes > kLeastLarge && bytes * size_t(members) > kLargeInAll) bytes /= 2;
    return bytes;
}

size_t NodeSegment::words_bytes(int members) { return to_line(size_t(members) * sizeof(Word)); }

size_t NodeSegment::bytes_for(int members) {
    return sizeof(Head) + 2 * words_bytes(members) +
           size_t(members) * (kSmallBuffers * kSmallStride + kLargeBuffers * large(members));
}

NodeSegment::NodeSegment(std::byte* memory, int members, int own)
    : head_(reinterpret_cast<Head*>(memory)),
      words_(reinterpret_cast<Word*>(memory + sizeof(Head))),
      asleep_(reinterpret_cast<Word*>(memory + sizeof(Head) + words_bytes(members))),
      small_(memory + sizeof(Head) + 2 * words_bytes(members)),
      large_base_(small_ + size_t(members) * kSmallBuffers * kSmallStride),
      members_(members),
      own_(own),
      large_(large(members)) {}

bool NodeSegment::has_all(uint64_t number) const {
    for (int rank = 0; rank < members_; ++rank)
        if (!has(rank, number)) return false;
    return true;
}

bool NodeSegment::holds(const Wanted& wanted) {
    const uint64_t number = wanted.number;
    if (wanted.until >= uint32_t(Wanted::Until::first))
        return has(int(wanted.until - uint32_t(Wanted::Until::first)), number);
    if (wanted.until == uint32_t(Wanted::Until::reduced))
        return head_->reduced.load(std::memory_order_acquire) >= number;
    if (known_ >= number) return true;
    if (scanned_ != number) {
        scanned_ = number;
        next_rank_ = 0;
    }
    while (next_rank_ < members_ && has(next_rank_, number)) ++next_rank_;
    if (next_rank_ < members_) return false;
    known_ = number;
    return true;
}

// Those that have arrived may have pieces of a reduction in hand.
bool NodeSegment::awaits(const Wanted& wanted, int rank) const {
    if (rank == own_) return false;
    const uint32_t first = uint32_t(Wanted::Until::first);
    if (wanted.until >= first && uint32_t(rank) != wanted.until - first) return false;
    return wanted.until == uint32_t(Wanted::Until::reduced) || !has(rank, wanted.number);
}

bool NodeSegment::missing_at(const Wanted& wanted, uint32_t place) const {
    for (int rank = 0; rank < members_; ++rank)
        if (beside(load(rank)) == place && awaits(wanted, rank)) return true;
    return false;
}

NodeSegment::Buffer NodeSegment::small(uint64_t number) {
    const uint32_t turn = small_turn_++ % kSmallBuffers;
    const uint64_t used = small_used_[turn];
    small_used_[turn] = number;
    return {small_ + turn * size_t(members_) * kSmallStride, kSmallStride, used == 0 ? 0 : used + 1};
}

NodeSegment::Buffer NodeSegment::large_buffer(uint64_t number) {
    const uint32_t turn = large_turn_++ % kLargeBuffers;
    const uint64_t used = large_used_[turn];
    large_used_[turn] = number;
    return {large_base_ + turn * size_t(members_) * large_, large_, used == 0 ? 0 : used + 1};
}

// Of calls before, the words have other numbers.
bool NodeSegment::take(uint64_t number, uint32_t pieces, uint32_t* piece) {
    uint64_t seen = head_->taken.load(std::memory_order_relaxed);
    for (;;) {
        const uint32_t next = number_in(seen) == number ? beside(seen) : 0;
        if (next >= pieces) return false;
        if (head_->taken.compare_exchange_weak(seen, with(number, next + 1), std::memory_order_relaxed)) {
            *piece = next;
            return true;
        }
    }
}

bool NodeSegment::give(uint64_t number, uint32_t pieces) {
    uint64_t seen = head_->given.load(std::memory_order_relaxed);
    for (;;) {
        const uint32_t done = (number_in(seen) == number ? beside(seen) : 0) + 1;
        if (head_->given.compare_exchange_weak(seen, with(number, done), std::memory_order_acq_rel,
                                               std::memory_order_relaxed))
            return done == pieces;
    }
}

void NodeSegment::announce(const Wanted& wanted, bool again) {
    asleep_[own_].store(with(wanted.number, wanted.until + 1), std::memory_order_relaxed);
    if (!again) head_->sleepers.fetch_add(1, std::memory_order_relaxed);
    heavy_barrier();  // partner: arrive()
}

void NodeSegment::withdraw() {
    asleep_[own_].store(0, std::memory_order_relaxed);
    head_->sleepers.fetch_sub(1, std::memory_order_relaxed);
}

bool NodeSegment::claim(int rank) {
    uint64_t seen = asleep_[rank].load(std::memory_order_relaxed);
    if (seen == 0 || seen == kClaimed) return false;
    const uint32_t until = beside(seen) - 1;
    const uint64_t number = number_in(seen);
    const uint32_t first = uint32_t(Wanted::Until::first);
    if (until != uint32_t(Wanted::Until::all_for_me) && !is_partner(own_, rank, members_)) return false;
    bool can_go_on = false;
    if (until >= first)
        can_go_on = until - first < uint32_t(members_) && has(int(until - first), number);
    else if (until == uint32_t(Wanted::Until::reduced))
        can_go_on = head_->reduced.load(std::memory_order_acquire) >= number;
    else
        can_go_on = has_all(number);
    return can_go_on && asleep_[rank].compare_exchange_strong(seen, kClaimed, std::memory_order_relaxed);
}

}  // namespace viaduct::mpi::coll
