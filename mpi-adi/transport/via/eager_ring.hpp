// SPDX-License-Identifier: BSD-2-Clause
// Packets past the NIC's queues: where remote writes are plain stores into the other process's memory, each
// of two processes lends the other an area of slots, and a packet is one remote write into the next free one
// (spec/adi G3, spec/mpi 5.2: MVAPICH's polled slots). No receive is posted for it and no completion taken;
// the receiver watches the last word of the slot that comes next, and takes the data where it lies. Slots are
// credits: only who has a free one writes. This page is the layout and the arithmetic.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

// Short packets have rings of their own, so that many fit into little cache.
enum SlotKind : unsigned { kShort, kLong, kSlotKinds };
// A long one takes a message of 32 KiB with its header and its end.
constexpr uint32_t kSlotCount[kSlotKinds] = {64, 16};
constexpr size_t kSlotBytes[kSlotKinds] = {512, 32 * 1024 + 64};

// The end of a slot. A remote write becomes visible in rising order, the last word last: position, length and
// head are that word. Position counts the packets of this kind from 1 on, so that what an earlier lap has
// left is never taken for news.
struct SlotEnd {
    Le32 taken[kSlotKinds];  // how many packets of either kind its sender has taken out of his own slots
    Le16 length;             // of the packet
    Le16 head;               // 0: the packet lies in one piece; else its data lies in front, aligned, and its
                             // header of so many bytes directly before this
    Le32 position;
};
static_assert(sizeof(SlotEnd) == 16);

// The first line of an area: what the borrower tells about the slots that he lends himself.
struct SlotNews {
    Le32 taken[kSlotKinds];
    Le64 asleep;  // not 0: nobody looks at them, send packets
};
static_assert(sizeof(SlotNews) == 16);

// A packet ends with its slot and begins on a line. Slots lie a line or two apart, so that their ends do not
// all fall into the same sets of the cache.
constexpr size_t kSlotLine = 64;
constexpr size_t kSlotStride[kSlotKinds] = {kSlotBytes[kShort] + kSlotLine,
                                            kSlotBytes[kLong] + 2 * kSlotLine};
constexpr size_t kSlotsAt[kSlotKinds] = {2 * kSlotLine,
                                         2 * kSlotLine + kSlotCount[kShort] * kSlotStride[kShort]};
constexpr size_t kSlotAreaBytes = kSlotsAt[kLong] + kSlotCount[kLong] * kSlotStride[kLong];
static_assert(kSlotsAt[kShort] % kSlotLine == 0 && kSlotsAt[kLong] % kSlotLine == 0);

// What a packet of `length` bytes takes of a slot.
constexpr size_t slot_bytes_for(size_t length) {
    return (length + sizeof(SlotEnd) + kSlotLine - 1) & ~(kSlotLine - 1);
}
constexpr SlotKind slot_kind_for(size_t length) {
    return slot_bytes_for(length) <= kSlotBytes[kShort] ? kShort : kLong;
}
// Where in the area the slot of a position ends.
constexpr size_t slot_end(SlotKind kind, uint32_t position) {
    return kSlotsAt[kind] + position % kSlotCount[kind] * kSlotStride[kind] + kSlotBytes[kind];
}

// The slots of one kind between two processes, seen from one of them: those it writes into and those it
// lends.
class SlotCounts {
public:
    explicit SlotCounts(SlotKind kind) : count_(kSlotCount[kind]) {}

    // --- writing ---
    bool room() const { return sent_ - returned_ != count_; }
    uint32_t free() const { return count_ - (sent_ - returned_); }
    uint32_t next() const { return sent_; }
    void sent() { ++sent_; }
    // The other side says that it has taken so many in all. What is older than known says nothing. False: it
    // cannot have.
    [[nodiscard]] bool heard(uint32_t taken) {
        const uint32_t more = taken - returned_;
        if (more > sent_ - returned_) return more > UINT32_MAX / 2;
        returned_ = taken;
        return true;
    }

    // --- taking ---
    uint32_t awaited() const { return taken_; }
    void took() { ++taken_; }
    // Every packet tells; where none goes back, a quarter of them is worth a remote write.
    bool much_untold() const { return taken_ - told_ >= count_ / 4; }
    uint32_t tell() { return told_ = taken_; }

private:
    uint32_t count_;
    uint32_t sent_ = 0, returned_ = 0;
    uint32_t taken_ = 0, told_ = 0;
};

struct vbuf;

// The slots between this process and a peer (eager_ring.hpp).
struct SlotPair {
    std::byte* lent = nullptr;  // the area the peer writes into
    VIP_MEM_HANDLE lent_handle = 0;
    uint64_t theirs = 0;                   // the one we write into
    const std::byte* mapped = nullptr;     // where it lies here, for prefetching; nullptr: not known
    const std::byte* next_line = nullptr;  // the last line of the short slot that is written next
    VIP_MEM_HANDLE theirs_handle = 0;
    vbuf* loan = nullptr;      // tells the peer of ours, and waits for room
    bool counted = false;      // in by_queue
    bool tried = false;        // to lend
    bool turned_away = false;  // there was no place; there may be one later
    bool told = false;         // the peer will hear of ours before it hears of anything that follows
    bool open = false;         // and we have heard of his: packets may go either way
    bool wanted = false;       // something waits for a free slot
    bool said_asleep = false;  // the peer believes that nobody looks at them
    SlotCounts counts[kSlotKinds] = {SlotCounts(kShort), SlotCounts(kLong)};
    const SlotEnd* awaited[kSlotKinds] = {};  // of the lent ones those that come next
    uint64_t heard = 0;                       // what the peer has told of his last, of both kinds
};

}  // namespace viaduct::via
