// SPDX-License-Identifier: BSD-2-Clause
// The eager ring (spec/adi G3, spec/mpi 5.2): where remote writes are plain stores into the memory of the other
// process, each of two processes registers an area of slots for the other, and a packet is one remote write into the
// next free slot. No receive is posted for it and no completion is taken: the receiver polls the last word of the next
// slot and reads the data in place. Slots are credits: a sender writes only into a free one. This file is the layout
// and the arithmetic; eager_ring.hpp has the operations.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

// Short packets have a ring of their own, so that many fit into little cache.
enum SlotKind : unsigned { kShort, kLong, kSlotKinds };
// A long one takes a message of 32 KiB with its header and its end.
constexpr uint32_t kSlotCount[kSlotKinds] = {64, 16};
constexpr size_t kSlotBytes[kSlotKinds] = {512, 32 * 1024 + 64};

// The end of a slot. A remote write becomes visible in rising order of addresses, the last word last: position, length
// and head are that word. Position counts the packets of this kind from 1 on, so the content of an earlier lap is never
// taken for a new packet.
struct SlotEnd {
    Le32 taken[kSlotKinds];  // packets of either kind that the sender has taken out of its own ring
    Le16 length;             // of the packet
    Le16 head;               // 0: the packet lies in one piece; else its data lies in front, aligned, and its
                             // header of so many bytes directly before this
    Le32 position;
};
static_assert(sizeof(SlotEnd) == 16);

// The first line of an area. The peer writes into it the state of its own ring.
struct RingStatus {
    Le32 taken[kSlotKinds];
    Le64 asleep;  // not 0: its owner does not poll it; packets go through the queue
};
static_assert(sizeof(RingStatus) == 16);

// A packet ends with its slot and begins on a line. Slots lie a line or two apart, so that their ends do not
// all fall into the same sets of the cache.
constexpr size_t kSlotLine = 64;
constexpr size_t kSlotStride[kSlotKinds] = {kSlotBytes[kShort] + kSlotLine, kSlotBytes[kLong] + 2 * kSlotLine};
constexpr size_t kSlotsAt[kSlotKinds] = {2 * kSlotLine, 2 * kSlotLine + kSlotCount[kShort] * kSlotStride[kShort]};
constexpr size_t kSlotAreaBytes = kSlotsAt[kLong] + kSlotCount[kLong] * kSlotStride[kLong];
static_assert(kSlotsAt[kShort] % kSlotLine == 0 && kSlotsAt[kLong] % kSlotLine == 0);

// What a packet of `length` bytes takes of a slot.
constexpr size_t slot_bytes_for(size_t length) { return (length + sizeof(SlotEnd) + kSlotLine - 1) & ~(kSlotLine - 1); }
constexpr SlotKind slot_kind_for(size_t length) {
    return slot_bytes_for(length) <= kSlotBytes[kShort] ? kShort : kLong;
}
// Where in the area the slot of a position ends.
constexpr size_t slot_end(SlotKind kind, uint32_t position) {
    return kSlotsAt[kind] + position % kSlotCount[kind] * kSlotStride[kind] + kSlotBytes[kind];
}

// Counts of the slots of one kind between two processes, seen from one of them: those of the peer that it writes into,
// and its own.
class SlotCounts {
public:
    explicit SlotCounts(SlotKind kind) : count_(kSlotCount[kind]) {}

    // --- writing ---
    bool room() const { return sent_ - returned_ != count_; }
    uint32_t free() const { return count_ - (sent_ - returned_); }
    uint32_t next() const { return sent_; }
    void sent() { ++sent_; }
    // The peer reports that it has taken so many in all. An older report changes nothing. False: the number is
    // impossible.
    [[nodiscard]] bool update(uint32_t taken) {
        const uint32_t more = taken - returned_;
        if (more > sent_ - returned_) return more > UINT32_MAX / 2;
        returned_ = taken;
        return true;
    }

    // --- taking ---
    uint32_t taken() const { return taken_; }
    void take() { ++taken_; }
    // Every packet reports; where none is sent, a quarter of the slots is worth a remote write.
    bool report_due() const { return taken_ - reported_ >= count_ / 4; }
    uint32_t report() { return reported_ = taken_; }

private:
    uint32_t count_;
    uint32_t sent_ = 0, returned_ = 0;
    uint32_t taken_ = 0, reported_ = 0;
};

struct vbuf;

// The rings between this process and a peer.
struct RingPair {
    std::byte* local = nullptr;  // the area that the peer writes into
    VIP_MEM_HANDLE local_handle = 0;
    uint64_t remote = 0;                   // address of the peer's area
    const std::byte* mapped = nullptr;     // where it is mapped here, for prefetching; nullptr: unknown
    const std::byte* next_line = nullptr;  // the last line of the short slot that is written next
    VIP_MEM_HANDLE remote_handle = 0;
    vbuf* offer = nullptr;  // the packet that offers our area, while it waits for room
    bool counted = false;   // in EagerRings::queue_only
    bool offer_tried = false;
    bool no_place = false;       // as many rings as allowed were in use; a place may become free
    bool offered = false;        // the offer is sent: packets that follow it may be in the ring
    bool open = false;           // offered by both sides: packets may go through either ring
    bool slot_wanted = false;    // something waits for a free slot
    bool marked_asleep = false;  // the peer sees RingStatus::asleep
    SlotCounts counts[kSlotKinds] = {SlotCounts(kShort), SlotCounts(kLong)};
    const SlotEnd* next_end[kSlotKinds] = {};  // ends of the local slots that are filled next
    uint64_t last_taken = 0;                   // SlotEnd::taken of the peer's last packet, of both kinds
};

}  // namespace viaduct::via
