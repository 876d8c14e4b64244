// SPDX-License-Identifier: BSD-2-Clause
// The state of the VIA module: one NIC, two completion queues, one tag, a connection for each peer. Names are
// the design's (adi-facts 2.2). Everything is used under the engine's lock, except lost_events.
#pragma once

#include <vipl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi-adi/protocol/cmpi_adi.h"
#include "mpi-adi/protocol/common/request_ids.hpp"
#include "mpi-adi/protocol/via/credits.hpp"
#include "mpi-adi/protocol/via/pieces.hpp"
#include "mpi-adi/protocol/via/vbuf.hpp"

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
    bool counted;                // receiver: packets are expected (F12)
    bool own_part_done;          // both: what this side moves is moved
    bool their_part_done;        // both: what the other side moves is moved
    bool cancelling;             // sender: asked for it back
    bool fetching;               // the list of the other side's pieces is on its way
    uint32_t packet_no;          // of the next r3 packet
    Registration* registration;  // of the user's buffer, nullptr: not registered
    VIP_MEM_HANDLE remote_handle;
    uint64_t remote_address;
    reqaddr_t peer_request;
    size_t length;   // to be moved
    size_t offset;   // moved by this side, or handed to the NIC
    size_t end;      // where the part ends that this side moves
    size_t message;  // receiver: length of the whole message
    // Where either buffer has gaps and the NIC gathers or scatters.
    PieceListPtr own;     // of this side, registered; nullptr: no gaps
    PieceListPtr theirs;  // of the other side, once it is here; nullptr: no gaps, or not needed
};

struct viadev_connection_t {
    VIP_VI_HANDLE vi = nullptr;
    Credits credits;
    process_t* proc = nullptr;
    uint32_t rank = 0;
    uint16_t next_packet_tosend = 0;
    uint16_t next_packet_expected = 0;
    int sends_outstanding = 0;
    int most_credits = 0;         // receives the peer posts for us at the start
    bool initialized = false;     // connected
    bool opening = false;         // to be connected, because somebody wants to send (open.cpp)
    bool lost = false;            // broken: nothing more goes in or out
    const char* doomed = nullptr;  // why it will be
    bool envelopes_only = false;  // the peer wants no eager data
    bool goodbye_sent = false;
    bool goodbye_had = false;
    bool inflow = false;        // on the flow list (C54)
    bool in_chores = false;     // on the list of those with receives to post or credits to tell
    bool answer_late = false;   // no buffer was left to refill the reserve at once
    bool slots_wanted = false;  // something waits for a place in the send queue
    viadev_connection_t* nextflow = nullptr;
    viadev_connection_t* next_chore = nullptr;
    vbuf* backlog_head = nullptr;  // packets that wait for credit, in order (F4)
    vbuf* backlog_tail = nullptr;
    LongTransfer* shandle_head = nullptr;  // long messages being moved, first come first served
    LongTransfer* shandle_tail = nullptr;
    EagerSeries* rhandle = nullptr;  // the eager receive in progress (C53)
};

// A connection on its way (open.cpp).
struct Opening {
    using Clock = std::chrono::steady_clock;
    viadev_connection_t* connection;
    bool known = false;  // the peer knows that it is wanted: it has rung, or has heard us ring
    bool asked = false;  // our request for it is pending
    Clock::time_point next = {};        // nothing is tried before
    Clock::time_point deaf_since = {};     // since when nobody answers there; 0: somebody did
    Clock::time_point failing_since = {};  // since when each request fails; 0: the last one did not
    std::chrono::milliseconds pause{10};   // after the next ring in vain
};

struct viadev_info_t {
    int np = 0;
    int me = 0;
    uint32_t busy_passes = 0;  // of progress
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_ULONG maxtransfersize = 0;  // of one remote write or read
    VIP_ULONG maxsegments = 2;      // of its descriptor, the address segment included
    bool rdma_read = false;
    bool pins_memory = true;
    VIP_NIC_ATTRIBUTES attributes = {};
    CreditRules rules;
    size_t eager_limit = MAX_DATA_SIZE;
    size_t r3_limit = 0;
    size_t gap_piece = SIZE_MAX;  // data with gaps is not packed when its pieces are so long on average
    size_t both_from = SIZE_MAX;  // messages from here up are moved by both sides at once
    Rendezvous rendezvous = Rendezvous::rput;
    int send_depth = 0;           // most descriptors on one send queue
    int sends_outstanding = 0;    // on all
    int local_waits = 0;          // long messages that end with the completion of a send
    bool envelopes_only = false;  // what we tell the peers
    bool closing = false;
    bool moved = false;  // a long message since packets were last taken
    taskinfo_t* task = nullptr;
    std::vector<std::unique_ptr<viadev_connection_t>> connections;  // by world rank
    bool on_demand = false;  // connections are made when they are wanted
    std::vector<Opening> openings;
    Opening::Clock::time_point all_joined = {};  // until then some may not have called pt_addconns yet
    viadev_connection_t* flow_head = nullptr;
    viadev_connection_t* chores_head = nullptr;
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

// --- post.cpp ---
void viadev_post_send(viadev_connection_t* c, vbuf* v);  // with credit, else to the backlog
int viadev_post_rdma(viadev_connection_t* c, vbuf* v, VIP_DESCRIPTOR* desc);
bool post_receive(viadev_connection_t* c, bool reserve);
void post_missing_receives(viadev_connection_t* c);
void send_noop(viadev_connection_t* c);
void send_goodbye(viadev_connection_t* c);
void viadev_process_send();  // collects finished sends
void complete_send(vbuf* v, bool good);
void push_backlog(viadev_connection_t* c);

// --- send.cpp ---
int MPID_VIA_eager_send(viadev_connection_t* c, const void* buf, size_t len, int src_lrank, int tag,
                        uint64_t context, int mode);
void start_queued_sends(viadev_connection_t* c);
bool eager_ok(const viadev_connection_t* c, size_t len);

// --- rendezvous.cpp: long messages until it is agreed how they go ---
int send_req_long_data(viadev_connection_t* c, mpip_req_t* req);
// Takes the list of pieces, where there is one, out of `start`.
void start_long_receive(LongStart& start, mpip_req_t* req);
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
// Both sides move, and this one has nothing to.
void finish_own_part(LongTransfer* t);
void MPID_VIA_long_send(viadev_connection_t* c);  // moves what may be moved of the connection's long messages
void long_transfer_sent(LongTransfer* t);         // the last piece is complete
void complete_finished();
bool incoming_r3(viadev_connection_t* c, const R3Next& packet, size_t length);
bool incoming_rput_finish(viadev_connection_t* c, const Finish& packet);
bool incoming_rget_finish(viadev_connection_t* c, const Finish& packet);

inline uint32_t packets_of(size_t length) { return static_cast<uint32_t>((length + kR3Data - 1) / kR3Data); }
inline bool is_sender(const LongTransfer* t) { return (t->request->r_flags & MPIP_REQ_SEND) != 0; }

// --- receive.cpp ---
int MPID_VIA_DeviceCheck();
int take_completion(VIP_VI_HANDLE vi);
void keep_series(EagerSeries* s);
bool viadev_incoming_eager_start(vbuf* v, viadev_connection_t* c, const EagerStart* header);
void deliver_series(EagerSeries* s, mpip_req_t* req);
void abandon_series(EagerSeries* s);

// --- cancel.cpp ---
int cancel_send(mpip_req_t* req);
bool incoming_cancel_request(viadev_connection_t* c, const Cancel& packet);
bool incoming_cancel_reply(viadev_connection_t* c, const Cancel& packet);

// --- lost.cpp ---
void fail_connection(viadev_connection_t* c, const char* why);
// The same from the top of a pass to come: for whoever is in the middle of a transfer, which fail_connection() frees.
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

inline viadev_connection_t* connection_of(const process_t* proc) {
    return static_cast<viadev_connection_t*>(proc->p_pm);
}

// Something of ours waits for credit or a place in the send queue.
inline bool blocked(const viadev_connection_t* c) {
    return c->backlog_head != nullptr || c->shandle_head != nullptr || c->proc->p_sendhead != nullptr;
}

}  // namespace viaduct::via
