// SPDX-License-Identifier: BSD-2-Clause
// What is done with the slots of eager rings (eager_ring.hpp): who gets them, writing packets into them,
// taking them out, and telling of it.
#pragma once

#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/via/lane.hpp"
#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

// Lends the peer slots, where that is possible and worth it.
void lend_slots(Lane* c);
// The packet that says so has left: what follows may go into the slots that the peer lends.
void slots_are_told(Lane* c);
void push_loan(Lane* c);
[[nodiscard]] bool incoming_slots(Lane* c, const Slots& packet);
// Nobody looks at them any more; and nobody can write to them either.
void close_slots(Lane* c);
void free_slots(Lane* c);
// The same for a peer that is lost, whose place is another one's now. Not while a packet is taken out of them.
void pass_on_place(Lane* lost);
// What the peer tells of those that we write into.
void hear_slot_news(Lane* c);
// And what we tell it of those that we have taken packets out of, when it is much.
void write_slot_news(Lane* c);
inline void tell_slot_news(Lane* c) {
    const SlotCounts* counts = c->slots.counts;
    if (counts[kShort].much_untold() || counts[kLong].much_untold()) [[unlikely]]
        write_slot_news(c);
}
// One look at those of everybody, for packets and for what waits for free ones. As for take_from_slots().
int look_at_slots(Nic& nic);
// The packet that comes next, if it is in a slot: 1. 0: none is there; -1: one that is behind a packet in the
// queue.
int take_from_slots(Lane* c);
// Before and after a sleep on the completion queue: meanwhile a sender uses packets instead of slots. False: do not
// sleep.
[[nodiscard]] bool leave_slots(Nic& nic);
void return_to_slots(Nic& nic);

inline const SlotNews* slot_news(const Lane* c) {
    return reinterpret_cast<const SlotNews*>(c->slots.lent);
}
// After each packet into a short slot.
inline void note_next_line(Lane* c) {
    if (c->slots.mapped != nullptr) [[likely]]
        c->slots.next_line = c->slots.mapped + slot_end(kShort, c->slots.counts[kShort].next()) - kSlotLine;
}
// Whether the peer looks at its slots.
inline bool by_slots(const Lane* c) {
    return c->slots.open &&
           __atomic_load_n(reinterpret_cast<const uint64_t*>(&slot_news(c)->asleep), __ATOMIC_RELAXED) == 0;
}
// Whether a packet of so many bytes finds a free one. When not, the connection is pushed as soon as there is.
inline bool slot_is_free(Lane* c, size_t length) {
    const SlotCounts& counts = c->slots.counts[slot_kind_for(length)];
    if (counts.room()) [[likely]]
        return true;
    hear_slot_news(c);
    if (!counts.room()) c->slots.wanted = true;
    return counts.room();
}
// After a write into the peer's slots: wakes a receiver that began to sleep in leave_slots() before it saw the write.
// Without a credit nothing is sent: packets that are under way wake the receiver, or it polls again after some
// milliseconds.
void send_wake(Lane* c);
inline void wake(Lane* c) {
    light_barrier();
    if (!by_slots(c)) [[unlikely]]
        send_wake(c);
}
// The longest packet that goes from a vbuf into a slot: that holds its end too. And the longest one that is
// written there out of the user's buffer.
constexpr size_t kMostInSlot = VBUF_BUFFER_SIZE - sizeof(SlotEnd);
constexpr size_t kMostWritten = kSlotBytes[kLong] - sizeof(SlotEnd);
// Message data in a packet that goes through a buffer, whichever way that takes then.
constexpr size_t kR3Data = kMostInSlot - sizeof(Data);

}  // namespace viaduct::via
