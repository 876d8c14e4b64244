// SPDX-License-Identifier: BSD-2-Clause
// What the files of this folder do for each other.
#pragma once

#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::via {

// --- device.cpp: set-up and end ---
int open_nic();
void prepare_rules(const taskinfo_t* task);
void close_nic();
int do_setup(taskinfo_t* task);
// Room in the completion queues for the processes that joined (spec/adi C24).
int grow_queues(const taskinfo_t* task);
void do_stop();
VIP_RELIABILITY_LEVEL level();
// A VI with its receives posted. MPIP_SUCCESS, or why not.
int equip(Lane* c);
// From here on packets may go out.
void connected(Lane* c);
// Disconnects one connection and collects all its descriptors.
void disconnect(Lane* c);

// --- card.cpp: what a process tells the others about its NIC (spec/adi C61) ---
struct Card {
    Le32 magic;
    Le32 version;
    Le64 host;     // processes with the same number share this host's NICs
    Le64 network;  // and this one the kind of NIC
    Le64 pids;     // pid means the same to those with the same number here
    Le32 pid;
    Le64 maxtransfersize;
    Le16 depth;    // receives it posts for each peer
    Le16 reserve;  // and those for packets without credit
    Le16 address_len;
    unsigned char address[20];
};
Card make_card();
const Card* card_of(const taskinfo_t* task, int rank);
bool reaches(const Card& mine, const Card& theirs);

// --- connect.cpp ---
int connect_all(taskinfo_t* task);

// --- open.cpp: connections that are made when they are wanted ---
// Whether jobs as large as this connect so.
bool wants_on_demand(const taskinfo_t* task);
// Somebody wants to send; progress does the rest.
void want_connection(Lane* c);
void answer_rings();
// One step of each connection on its way; whether any is through, or given up.
bool advance_openings();
// A packet is here before progress has looked: the peer has its connection. False: it has broken meanwhile.
bool finish_opening(Lane* c);

// --- slots.cpp: packets that are written into memory which the other side watches (slots.hpp) ---
// Lends the peer slots, where that is possible and worth it.
void lend_slots(Lane* c);
// The packet that says so has left: what follows may go into the slots that the peer lends.
void slots_are_told(Lane* c);
void push_loan(Lane* c);
bool incoming_slots(Lane* c, const Slots& packet);
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
int look_at_slots();
// The packet that comes next, if it is in a slot: 1. 0: none is there; -1: one that is behind a packet in the
// queue.
int take_from_slots(Lane* c);
// Before and after a sleep on the queue: whoever sends meanwhile uses packets there. False: do not sleep.
bool leave_slots();
void return_to_slots();

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
// After something was written into the peer's memory. Partner: leave_slots(). Whoever fell asleep before may
// not have seen it. Without a credit packets are on the way that wake him; else he looks by himself after
// some milliseconds.
void send_wake(Lane* c);
inline void wake(Lane* c) {
    light_barrier();
    if (!by_slots(c)) [[unlikely]]
        send_wake(c);
}
// The longest packet that goes from a vbuf into a slot: that holds its end too. And the longest one that is written there
// out of the user's buffer.
constexpr size_t kMostInSlot = VBUF_BUFFER_SIZE - sizeof(SlotEnd);
constexpr size_t kMostWritten = kSlotBytes[kLong] - sizeof(SlotEnd);
// Message data in a packet that goes through a buffer, whichever way that takes then.
constexpr size_t kR3Data = kMostInSlot - sizeof(Data);

// --- post.cpp ---
// A packet by slot or with credit. False: there is no room now, and the vbuf is the caller's.
bool viadev_post_send(Lane* c, vbuf* v);
// With a credit, by the queue.
void post_with_credit(Lane* c, vbuf* v);
// A whole message into a slot that is free, with no buffer between. False: not now, and nothing has happened.
bool write_eager_now(Lane* c, const void* data, size_t bytes, int src_lrank, int tag, uint64_t context, int mode);
// The same, its data at the beginning of the vbuf, by a descriptor.
void post_eager_in_slot(Lane* c, vbuf* v, size_t bytes, int src_lrank, int tag, uint64_t context, int mode);
// The same for a piece of a long one.
bool write_r3_now(Lane* c, const void* data, size_t bytes, reqaddr_t receive, uint32_t at);
bool has_place(Lane* c);  // the send queue takes one more
int viadev_post_rdma(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc);
bool post_receive(Lane* c, bool reserve);
void post_missing_receives(Lane* c);
void send_noop(Lane* c);
// The last packet: it costs no credit.
bool send_closing(Lane* c);
void viadev_process_send();  // collects finished sends
void complete_send(vbuf* v, bool good);

inline uint32_t packets_of(size_t length) { return static_cast<uint32_t>((length + kR3Data - 1) / kR3Data); }

// --- receive.cpp ---
int MPID_VIA_DeviceCheck();
void take_what_came_before_the_end(Lane* c);
int take_completion(VIP_VI_HANDLE vi);
// A packet as it lies in a slot: in one piece (head 0), or its data first and its header elsewhere.
struct SlotPacket {
    const char* first;
    const char* header;
    size_t length, head;
};
void take_slot_packet(Lane* c, const SlotPacket& packet);

// --- lost.cpp ---
inline void fail_connection(Lane* c, const char* why) { viadev.fail(c->peer, why); }
// The same from the top of a pass to come.
void doom_connection(Lane* c, const char* why);
void look_for_lost();

// --- flow.cpp ---
int work_on_flow_list();
int do_chores();

inline void want_flow(Lane* c) {
    if (c->inflow) return;
    c->inflow = true;
    c->nextflow = viadev.flow_head;
    viadev.flow_head = c;
}

inline void want_chores(Lane* c) {
    if (c->in_chores) return;
    c->in_chores = true;
    c->next_chore = viadev.chores_head;
    viadev.chores_head = c;
}

inline void want_sends(Lane* c) {
    if (c->in_sending) return;
    c->in_sending = true;
    c->next_sending = viadev.sending_head;
    viadev.sending_head = c;
}

inline Lane* connection_of(const process_t* proc) { return static_cast<Lane*>(protocol::peer_of(proc)->lane.get()); }

}  // namespace viaduct::via
