// SPDX-License-Identifier: BSD-2-Clause
// The state of the VIA module: one NIC, two completion queues, one tag, a connection for each peer. Names are
// the design's (adi-facts 2.2). Everything is used under the engine's lock, except lost_events.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/adi/request_ids.hpp"
#include "mpi-adi/transport/via/credits.hpp"
#include "mpi-adi/transport/via/pieces.hpp"
#include "mpi-adi/transport/via/slots.hpp"
#include "mpi-adi/transport/via/vbuf.hpp"
#include "mpi-adi/transport/via/ways.hpp"

namespace viaduct::via {

struct viadev_connection_t;

// What an unexpected message holds (um_data) begins with this.
struct Held {
    enum class Kind : uint8_t { series, long_start };
    Kind kind;
    viadev_connection_t* connection;
    Held* next_free;
};

// A message of several eager packets while it arrives, or until it is received.
struct EagerSeries : Held {
    mpip_req_t* request;  // nullptr: unexpected so far
    size_t total, got;
    uint32_t packets;
    vbuf* head;  // data that waits for a receive, in order
    vbuf* tail;
    bool abandoned;  // nobody wants it: swallow the rest
};

// A long message that waits for its receive: what its request said.
struct LongStart : Held {
    size_t length;
    reqaddr_t sreq;
    uint64_t address;
    VIP_MEM_HANDLE handle;
    uint32_t descriptors;
    uint32_t src_lrank;
    uint64_t context;
    Rendezvous wanted;
    uint32_t list_length;  // data with gaps: its pieces; 0: not told
    PieceListPtr pieces;   // when they came with the request; else they lie at address
};

// One long message underway, on either side (C52).
struct LongTransfer {
    LongTransfer* next;  // in the connection's queue, or free
    mpip_req_t* request;
    viadev_connection_t* connection;
    Rendezvous protocol;
    bool replied;                // sender: the reply is here
    uint32_t awaited;            // receiver: packets for which receives are posted (F12)
    bool own_part_done;          // both: what this side moves is moved
    bool their_part_done;        // both: what the other side moves is moved
    bool cancelling;             // sender: asked for it back
    bool fetching;               // the list of the other side's pieces is on its way
    uint32_t packet_no;          // of the next r3 packet
    uint32_t piece;              // sender: how much of the data goes into a slot; 0: not known yet
    Registration* registration;  // of the user's buffer, nullptr: not registered
    VIP_MEM_HANDLE remote_handle;
    uint64_t remote_address;
    reqaddr_t peer_request;
    size_t length;        // to be moved
    size_t offset;        // moved by this side, or handed to the NIC
    size_t end;           // where the part ends that this side moves
    size_t message;       // receiver: length of the whole message
    Ways::Choice choice;  // receiver
    uint64_t began;       // when it was asked for, ns
    // Where either buffer has gaps and the NIC gathers or scatters.
    PieceListPtr own;     // of this side, registered; nullptr: no gaps
    PieceListPtr theirs;  // of the other side, once it is here; nullptr: no gaps, or not needed
};

// The slots between this process and a peer (slots.hpp).
struct SlotPair {
    std::byte* lent = nullptr;  // the area the peer writes into
    VIP_MEM_HANDLE lent_handle = 0;
    uint64_t theirs = 0;  // the one we write into
    const std::byte* mapped = nullptr;     // where it lies here, for prefetching; nullptr: not known
    const std::byte* next_line = nullptr;  // the last line of the short slot that is written next
    VIP_MEM_HANDLE theirs_handle = 0;
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

struct viadev_connection_t {
    VIP_VI_HANDLE vi = nullptr;
    Credits credits;
    SlotPair slots;
    Ways ways;                   // of long messages that come here
    uint64_t last_measured = 0;  // when the last of those that are measured was here, ns
    process_t* proc = nullptr;
    uint32_t rank = 0;
    uint16_t next_packet_tosend = 0;
    uint16_t next_packet_expected = 0;
    int sends_outstanding = 0;
    int most_credits = 0;          // receives the peer posts for us at the start
    bool initialized = false;      // connected
    bool opening = false;          // to be connected, because somebody wants to send (open.cpp)
    bool lost = false;             // broken: nothing more goes in or out
    const char* doomed = nullptr;  // why it will be
    bool envelopes_only = false;   // the peer wants no eager data
    bool goodbye_sent = false;
    bool goodbye_had = false;
    bool inflow = false;        // on the flow list (C54)
    bool in_chores = false;     // on the list of those with receives to post or credits to tell
    bool answer_late = false;   // no buffer was left to refill the reserve at once
    bool place_wanted = false;  // something waits for a place in the send queue
    viadev_connection_t* nextflow = nullptr;
    viadev_connection_t* next_chore = nullptr;
    bool in_sending =
        false;  // on the list of those with sends to collect, where these have no completion queue
    viadev_connection_t* next_sending = nullptr;
    vbuf* backlog_head = nullptr;  // packets that wait for credit, in order (F4)
    vbuf* backlog_tail = nullptr;
    vbuf* refused_head = nullptr;  // packets that the queue did not take: the connection is about to end
    bool refuses_receives = false;
    LongTransfer* shandle_head = nullptr;  // long messages being moved, first come first served
    LongTransfer* shandle_tail = nullptr;
    EagerSeries* rhandle = nullptr;  // the eager receive in progress (C53)
};

// A connection on its way (open.cpp).
constexpr VIP_ULONG kFirstAttempt = 300;  // ms
struct Opening {
    using Clock = std::chrono::steady_clock;
    viadev_connection_t* connection;
    bool known = false;                 // the peer knows that it is wanted: it has rung, or has heard us ring
    bool asked = false;                 // our request for it is pending
    VIP_ULONG attempt = kFirstAttempt;  // how long it stays, ms
    Clock::time_point next = {};        // nothing is tried before
    Clock::time_point look = {};        // when it is looked again whether the peer lives
    Clock::time_point deaf_since = {};  // since when no bell hangs there; 0: one does
    Clock::time_point failing_since = {};  // since when each request fails; 0: the last one did not
    std::chrono::milliseconds pause{10};   // after the next ring in vain
};

struct viadev_info_t {
    int np = 0;
    int me = 0;
    uint32_t busy_passes = 0;  // of progress
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends; nullptr: each queue is looked at
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_ULONG maxtransfersize = 0;  // of one remote write or read
    VIP_ULONG maxsegments = 2;      // of its descriptor, the address segment included
    bool rdma_read = false;
    bool pins_memory = true;
    bool mapped = false;  // what VipxAllocMemory gives, by connected processes
    VIP_NIC_ATTRIBUTES attributes = {};
    CreditRules rules;
    size_t eager_limit = MAX_DATA_SIZE;
    size_t r3_limit = 0;
    size_t gap_piece = SIZE_MAX;  // data with gaps is not packed when its pieces are so long on average
    size_t both_from = SIZE_MAX;  // messages from here up are moved by both sides at once
    Rendezvous rendezvous = Rendezvous::rput;
    int send_depth = 0;                         // most descriptors on one send queue
    int collect_from = 0;                       // from how many on finished ones are collected
    int sends_outstanding = 0;                  // on all
    int local_waits = 0;                        // long messages that end with the completion of a send
    std::vector<viadev_connection_t*> lenders;  // whose slots are open
    size_t lent = 0;                            // areas of slots
    size_t most_lenders = 32;                   // each costs a look in every pass, and up to 546 KiB
    int by_queue = 0;                           // connections whose packets come through the queue alone
    size_t next_lender = 0;                     // who is looked at first
    uint32_t looks = 0;                         // at slots alone since the queue was looked at
    long slots_after = 0;                       // packets of a peer; 0: no slots are lent
    size_t most_written = 0;                    // the longest message that goes into a slot at once
    uint32_t packets_in_row = 0;                // from slots, with no look in vain between them
    bool envelopes_only = false;                // what we tell the peers
    bool closing = false;
    bool moved = false;  // a long message since packets were last taken
    taskinfo_t* task = nullptr;
    std::vector<std::unique_ptr<viadev_connection_t>> connections;  // by world rank
    bool on_demand = false;  // connections are made when they are wanted
    std::vector<Opening> openings;
    Opening::Clock::time_point all_joined = {};  // until then some may not have called pt_addconns yet
    viadev_connection_t* flow_head = nullptr;
    viadev_connection_t* chores_head = nullptr;
    viadev_connection_t* sending_head = nullptr;
    LongTransfer* finished = nullptr;     // complete, the engine not told yet
    viadev_connection_t* last = nullptr;  // of the last packet: ping-pongs need no look-up
    adi::RequestIds ids{MPIP_PROTO_VIA};
    std::atomic<uint32_t> lost_events{0};  // counted by the error callback and the bell, on threads of theirs
    uint32_t lost_seen = 0;
};

extern viadev_info_t viadev;

// --- device.cpp: set-up and end ---
int open_nic();
void prepare_rules(const taskinfo_t* task);
void close_nic();
int do_setup(taskinfo_t* task);
// Room in the completion queues for the processes that joined (C24).
int grow_queues(const taskinfo_t* task);
void do_stop();
VIP_RELIABILITY_LEVEL level();
// A record for the peer; in jobs that connect on demand that is all until somebody sends.
void make_connection(int rank, process_t* proc);
// A VI with its receives posted. MPIP_SUCCESS, or why not.
int equip(viadev_connection_t* c);
// From here on packets may go out.
void connected(viadev_connection_t* c);
// Disconnects one connection and collects all its descriptors.
void disconnect(viadev_connection_t* c);

// --- card.cpp: what a process tells the others about its NIC (C61) ---
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
void want_connection(viadev_connection_t* c);
void answer_rings();
// One step of each connection on its way; whether any is through, or given up.
bool advance_openings();
// A packet is here before progress has looked: the peer has its connection. False: it has broken meanwhile.
bool finish_opening(viadev_connection_t* c);

// --- slots.cpp: packets that are written into memory which the other side watches (slots.hpp) ---
// Lends the peer slots, where that is possible and worth it.
void lend_slots(viadev_connection_t* c);
// The packet that says so has left: what follows may go into the slots that the peer lends.
void slots_are_told(viadev_connection_t* c);
bool incoming_slots(viadev_connection_t* c, const Slots& packet);
// Nobody looks at them any more; and nobody can write to them either.
void close_slots(viadev_connection_t* c);
void free_slots(viadev_connection_t* c);
// The same for a peer that is lost, whose place is another one's now. Not while a packet is taken out of them.
void pass_on_place(viadev_connection_t* lost);
// What the peer tells of those that we write into.
void hear_slot_news(viadev_connection_t* c);
// And what we tell it of those that we have taken packets out of, when it is much.
void write_slot_news(viadev_connection_t* c);
inline void tell_slot_news(viadev_connection_t* c) {
    const SlotCounts* counts = c->slots.counts;
    if (counts[kShort].much_untold() || counts[kLong].much_untold()) [[unlikely]]
        write_slot_news(c);
}
// One look at those of everybody, for packets and for what waits for free ones. As for take_from_slots().
int look_at_slots();
// The packet that comes next, if it is in a slot: 1. 0: none is there; -1: one that is behind a packet in the
// queue.
int take_from_slots(viadev_connection_t* c);
// Before and after a sleep on the queue: whoever sends meanwhile uses packets there. False: do not sleep.
bool leave_slots();
void return_to_slots();

inline const SlotNews* slot_news(const viadev_connection_t* c) {
    return reinterpret_cast<const SlotNews*>(c->slots.lent);
}
// After each packet into a short slot.
inline void note_next_line(viadev_connection_t* c) {
    if (c->slots.mapped != nullptr) [[likely]]
        c->slots.next_line = c->slots.mapped + slot_end(kShort, c->slots.counts[kShort].next()) - kSlotLine;
}
// Whether the peer looks at its slots.
inline bool by_slots(const viadev_connection_t* c) {
    return c->slots.open &&
           __atomic_load_n(reinterpret_cast<const uint64_t*>(&slot_news(c)->asleep), __ATOMIC_RELAXED) == 0;
}
// Whether a packet of so many bytes finds a free one. When not, the connection is pushed as soon as there is.
inline bool slot_is_free(viadev_connection_t* c, size_t length) {
    const SlotCounts& counts = c->slots.counts[slot_kind_for(length)];
    if (counts.room()) [[likely]]
        return true;
    hear_slot_news(c);
    if (!counts.room()) c->slots.wanted = true;
    return counts.room();
}
// The same for a whole message of so many bytes, and whether it may go there at all: nothing waits before it.
inline bool may_write_eager(viadev_connection_t* c, size_t bytes) {
    return c->slots.open && bytes <= viadev.most_written && !c->envelopes_only && c->backlog_head == nullptr &&
           by_slots(c) && slot_is_free(c, bytes + sizeof(EagerInSlot));
}
// After something was written into the peer's memory. Partner: leave_slots(). Whoever fell asleep before may
// not have seen it. Without a credit packets are on the way that wake him; else he looks by himself after
// some milliseconds.
void send_wake(viadev_connection_t* c);
inline void wake(viadev_connection_t* c) {
    light_barrier();
    if (!by_slots(c)) [[unlikely]]
        send_wake(c);
}
// The longest packet that goes from a vbuf into a slot: that holds its end too. And the longest one that is written there
// out of the user's buffer.
constexpr size_t kMostInSlot = VBUF_BUFFER_SIZE - sizeof(SlotEnd);
constexpr size_t kMostWritten = kSlotBytes[kLong] - sizeof(SlotEnd);

// --- post.cpp ---
void viadev_post_send(viadev_connection_t* c, vbuf* v);  // by slot or with credit, else to the backlog
// A whole message into a slot, with no buffer between. False: not now, and nothing has happened.
bool write_eager_now(viadev_connection_t* c, const void* data, size_t bytes, int src_lrank, int tag,
                     uint64_t context, int mode);
// The same, its data at the beginning of the vbuf, by a descriptor.
void post_eager_in_slot(viadev_connection_t* c, vbuf* v, size_t bytes, int src_lrank, int tag,
                        uint64_t context, int mode);
// The same for a piece of a long one, for which a slot is free.
bool write_r3_now(viadev_connection_t* c, const void* data, size_t bytes, reqaddr_t receive, uint32_t packet_no);
bool has_place(viadev_connection_t* c);  // the send queue takes one more
int viadev_post_rdma(viadev_connection_t* c, vbuf* v, VIP_DESCRIPTOR* desc);
bool post_receive(viadev_connection_t* c, bool reserve);
void post_missing_receives(viadev_connection_t* c);
void send_noop(viadev_connection_t* c);
void send_goodbye(viadev_connection_t* c);
void viadev_process_send();  // collects finished sends
void complete_send(vbuf* v, bool good);
void push_backlog(viadev_connection_t* c);

// --- send.cpp ---
// How a message can go at once.
enum class EagerWay { none, queue, slot };
int MPID_VIA_eager_send(viadev_connection_t* c, const void* buf, size_t len, int src_lrank, int tag,
                        uint64_t context, int mode, EagerWay way);
void start_queued_sends(viadev_connection_t* c);
EagerWay eager_way(viadev_connection_t* c, size_t len);

// --- rendezvous.cpp: long messages until it is agreed how they go ---
int send_req_long_data(viadev_connection_t* c, mpip_req_t* req);
// Takes the list of pieces, where there is one, out of `start`.
void start_long_receive(LongStart& start, mpip_req_t* req);
void keep_start(LongStart* start);  // one that is not needed any more
LongTransfer* transfer_of(mpip_req_t* req);
void forget_transfer(mpip_req_t* req);
bool incoming_long_request(viadev_connection_t* c, const LongRequest& packet, size_t length);
bool incoming_long_reply(viadev_connection_t* c, const LongReply& packet, size_t length);

// --- move.cpp: and from then on ---
// Queues a transfer whose way is settled.
void start_moving(LongTransfer* t);
// Reads the list of `count` pieces at the other side first, then moves. False: it cannot be read, nothing was
// begun.
bool start_with_list(LongTransfer* t, uint64_t address, VIP_MEM_HANDLE handle, size_t count);
void finish_transfer(LongTransfer* t);
uint64_t now_ns();  // for what is measured
// Both sides move, and this one has nothing to.
void finish_own_part(LongTransfer* t);
void MPID_VIA_long_send(viadev_connection_t* c);  // moves what may be moved of the connection's long messages
void long_transfer_sent(LongTransfer* t);         // the last piece is complete
void complete_finished();
bool incoming_r3(viadev_connection_t* c, const R3Next& packet, const char* data, size_t bytes);
bool incoming_rput_finish(viadev_connection_t* c, const Finish& packet);
bool incoming_rget_finish(viadev_connection_t* c, const Finish& packet);

inline uint32_t packets_of(size_t length) { return static_cast<uint32_t>((length + kR3Data - 1) / kR3Data); }
inline bool is_sender(const LongTransfer* t) { return (t->request->r_flags & MPIP_REQ_SEND) != 0; }

// --- receive.cpp ---
int MPID_VIA_DeviceCheck();
void take_what_came_before_the_end(viadev_connection_t* c);
int take_completion(VIP_VI_HANDLE vi);
void keep_series(EagerSeries* s);
// A packet as it lies in a slot: in one piece (head 0), or its data first and its header elsewhere.
struct SlotPacket {
    const char* first;
    const char* header;
    size_t length, head;
};
void take_slot_packet(viadev_connection_t* c, const SlotPacket& packet);
void deliver_series(EagerSeries* s, mpip_req_t* req);
void abandon_series(EagerSeries* s);

// --- cancel.cpp ---
int cancel_send(mpip_req_t* req);
bool incoming_cancel_request(viadev_connection_t* c, const Cancel& packet);
bool incoming_cancel_reply(viadev_connection_t* c, const Cancel& packet);

// --- lost.cpp ---
void fail_connection(viadev_connection_t* c, const char* why);
// The same from the top of a pass to come: for whoever is in the middle of a transfer, which
// fail_connection() frees.
void doom_connection(viadev_connection_t* c, const char* why);
void look_for_lost();

// --- flow.cpp ---
void push_connection(viadev_connection_t* c);
int work_on_flow_list();
int do_chores();

inline void want_flow(viadev_connection_t* c) {
    if (c->inflow) return;
    c->inflow = true;
    c->nextflow = viadev.flow_head;
    viadev.flow_head = c;
}

inline void want_chores(viadev_connection_t* c) {
    if (c->in_chores) return;
    c->in_chores = true;
    c->next_chore = viadev.chores_head;
    viadev.chores_head = c;
}

inline void want_sends(viadev_connection_t* c) {
    if (c->in_sending) return;
    c->in_sending = true;
    c->next_sending = viadev.sending_head;
    viadev.sending_head = c;
}

inline viadev_connection_t* connection_of(const process_t* proc) {
    return static_cast<viadev_connection_t*>(proc->p_pm);
}

// Something of ours waits for credit or a place in the send queue.
inline bool blocked(const viadev_connection_t* c) {
    return c->backlog_head != nullptr || c->shandle_head != nullptr || c->proc->p_sendhead != nullptr;
}

}  // namespace viaduct::via
