// SPDX-License-Identifier: BSD-2-Clause
// The operations on eager rings (ring_layout.hpp): offering a ring to a peer, polling, taking packets out, and
// reporting free slots. Under the engine's lock.
#pragma once

#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/via/lane.hpp"
#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

// Offers the peer a ring in our memory, where the NIC maps memory and a place is left.
void offer_ring(Lane* c);
// The offer is sent: what follows may go through the peer's ring, once it has offered one.
void note_ring_offered(Lane* c);
// Sends an offer that found no room.
void push_ring_offer(Lane* c);
// The peer's offer. False: its fields are invalid.
[[nodiscard]] bool take_ring_offer(Lane* c, const RingOffer& packet);
// Stops the use of the rings; their memory is freed by free_ring().
void close_ring(Lane* c);
void free_ring(Lane* c);
// Frees the ring of a lost peer and offers its place to another one. Not while a packet is taken out of that ring.
void offer_freed_ring(Lane* lost);
// Reads what the peer has reported of the slots that this process writes into.
void read_ring_status(Lane* c);
// Reports the local slots that are free again; report_ring_status() does it when they are many.
void write_ring_status(Lane* c);
inline void report_ring_status(Lane* c) {
    const SlotCounts* counts = c->ring.counts;
    if (counts[kShort].report_due() || counts[kLong].report_due()) [[unlikely]]
        write_ring_status(c);
}
// Polls the open rings in turn, for packets and for free slots. Returns as receive_from_ring() does.
int poll_rings(Nic& nic);
// Takes the next packet of the connection if it is in the ring: 1. 0: the ring is empty. -1: the packet in the ring
// comes after one that is in the queue.
int receive_from_ring(Lane* c);
// Before and after a sleep on the completion queue: in between, senders use the queue instead of the rings. False: a
// packet is there, do not sleep.
[[nodiscard]] bool suspend_rings(Nic& nic);
void resume_rings(Nic& nic);

inline const RingStatus* ring_status(const Lane* c) { return reinterpret_cast<const RingStatus*>(c->ring.local); }
// After each packet into a short slot.
inline void set_next_line(Lane* c) {
    if (c->ring.mapped != nullptr) [[likely]]
        c->ring.next_line = c->ring.mapped + slot_end(kShort, c->ring.counts[kShort].next()) - kSlotLine;
}
// Whether packets go through the ring: it is open and the peer polls it.
inline bool uses_ring(const Lane* c) {
    return c->ring.open &&
           __atomic_load_n(reinterpret_cast<const uint64_t*>(&ring_status(c)->asleep), __ATOMIC_RELAXED) == 0;
}
// Whether a slot is free for a packet of so many bytes. If none is, the connection is pushed as soon as one is.
inline bool has_free_slot(Lane* c, size_t length) {
    const SlotCounts& counts = c->ring.counts[slot_kind_for(length)];
    if (counts.room()) [[likely]]
        return true;
    read_ring_status(c);
    if (!counts.room()) c->ring.slot_wanted = true;
    return counts.room();
}
// After a write into the peer's ring: wakes a receiver that began to sleep in suspend_rings() before it saw the write.
// Without a credit nothing is sent: packets that are under way wake the receiver, or it polls again after some
// milliseconds.
void send_wake(Lane* c);
inline void wake_receiver(Lane* c) {
    light_barrier();  // partner: the heavy barrier in suspend_rings()
    if (!uses_ring(c)) [[unlikely]]
        send_wake(c);
}
// The longest packet that goes from a vbuf into a slot: that holds its end too. And the longest one that is
// written there out of the user's buffer.
constexpr size_t kMostInSlot = VBUF_BUFFER_SIZE - sizeof(SlotEnd);
constexpr size_t kMostWritten = kSlotBytes[kLong] - sizeof(SlotEnd);
// Message data in a packet that goes through a buffer, then through the ring or the queue.
constexpr size_t kR3Data = kMostInSlot - sizeof(Data);

}  // namespace viaduct::via
