// SPDX-License-Identifier: BSD-2-Clause
// The device from set-up to end (spec/adi 3, C13-C21, C27). In do_stop the design destroys the tag while
// memory still uses it; here memory goes first.
#include "mpi-adi/transport/via/device.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/bell.hpp"
#include "mpi-adi/transport/via/registration.hpp"

namespace viaduct::via {

Via viadev;

namespace {

void on_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {
    viadev.lost_events.fetch_add(1, std::memory_order_release);
}

int fail_call(const char* call, VIP_RETURN rc) {
    return adi::fail(MPIP_ERR_OTHER, "%s answers %d", call, static_cast<int>(rc));
}

int peers_of(const taskinfo_t* task) { return std::max(1, task->ti_nproto[MPIP_PROTO_VIA]); }

// Reserve and extra fit into the queues and completion queues of this NIC.
void choose_rules(int np) {
    const VIP_NIC_ATTRIBUTES& nic = viadev.attributes;
    const int queue = static_cast<int>(std::min<VIP_ULONG>(nic.MaxDescriptorsPerQueue, 1 << 15));
    const int each = static_cast<int>(std::min<VIP_ULONG>(nic.MaxCQEntries, 1 << 20)) / std::max(1, np);
    const int room = std::min(queue, each);
    int depth = static_cast<int>(adi::param_number(adi::Param::prepost_depth));
    if (depth == 0) depth = std::clamp(1024 / std::max(1, np), 8, 64);
    int extra = static_cast<int>(adi::param_number(adi::Param::rendezvous_extra));
    if (!adi::param_given(adi::Param::rendezvous_extra)) extra = std::min(extra, depth);
    viadev.credit_rules = CreditRules::for_depth(depth, extra);
    while (viadev.credit_rules.depth + viadev.credit_rules.extra + viadev.credit_rules.reserve > room && depth > 4) {
        extra > 0 ? extra /= 2 : depth /= 2;
        viadev.credit_rules = CreditRules::for_depth(depth, extra);
    }
}

// Entries of the completion queue of receives for so many peers.
VIP_ULONG receive_entries(int peers) {
    const VIP_ULONG each =
        static_cast<VIP_ULONG>(viadev.credit_rules.depth + viadev.credit_rules.extra + viadev.credit_rules.reserve);
    return std::min(viadev.attributes.MaxCQEntries, static_cast<VIP_ULONG>(peers) * each + 16);
}

// And of that of sends, whose queues share it.
VIP_ULONG send_entries(int peers) {
    const VIP_ULONG most = viadev.attributes.MaxCQEntries;
    viadev.send_depth = static_cast<int>(std::min<VIP_ULONG>(
        {viadev.attributes.MaxDescriptorsPerQueue, 128, most / static_cast<VIP_ULONG>(peers)}));
    // Where a send is mostly complete when it is posted, few buffers that stay in the cache are better than
    // many.
    constexpr int kFew = 8;
    viadev.collect_from = viadev.mapped ? std::min(kFew, viadev.send_depth) : viadev.send_depth;
    return static_cast<VIP_ULONG>(peers) * static_cast<VIP_ULONG>(viadev.send_depth);
}

int create_queues(int peers) {
    VIP_RETURN rc = VipCreateCQ(viadev.nic, receive_entries(peers), &viadev.cq);
    if (rc != VIP_SUCCESS) return fail_call("VipCreateCQ", rc);
    const VIP_ULONG entries = send_entries(peers);
    // There the queues themselves are as quickly looked at.
    if (viadev.mapped) return MPIP_SUCCESS;
    rc = VipCreateCQ(viadev.nic, entries, &viadev.scq);
    return rc == VIP_SUCCESS ? MPIP_SUCCESS : fail_call("VipCreateCQ", rc);
}

// C21: the name service is asked for the own address as the design does; the NIC's own word is what is used.
void look_up_own_address(taskinfo_t* task) {
    union {
        VIP_NET_ADDRESS head;
        unsigned char room[128];
    } own = {};
    if (VipNSInit(viadev.nic, nullptr) != VIP_SUCCESS) return;
    char* host = task->ti_procs[task->ti_index].pi_host;
    if (*host != '\0') adi::let_go(VipNSGetHostByName(viadev.nic, host, &own.head, 0));
    adi::let_go(VipNSShutdown(viadev.nic));
}

}  // namespace

VIP_RELIABILITY_LEVEL level() {
    const VIP_RELIABILITY_LEVEL offered = viadev.attributes.ReliabilityLevelSupport;
    return (offered & VIP_SERVICE_RELIABLE_DELIVERY) != 0 ? VIP_SERVICE_RELIABLE_DELIVERY
                                                          : VIP_SERVICE_RELIABLE_RECEPTION;
}

int open_nic() {
    if (viadev.nic != nullptr) return MPIP_SUCCESS;
    const char* given = adi::param_text(adi::Param::via_device);
    VIP_RETURN rc = VipOpenNic(*given != '\0' ? given : "nic0", &viadev.nic);
    if (rc != VIP_SUCCESS) return fail_call("VipOpenNic", rc);
    rc = VipQueryNic(viadev.nic, &viadev.attributes);
    if (rc != VIP_SUCCESS) return fail_call("VipQueryNic", rc);
    if (viadev.attributes.MaxTransferSize < VBUF_BUFFER_SIZE ||
        (viadev.attributes.ReliabilityLevelSupport &
         (VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION)) == 0 ||
        viadev.attributes.MaxDiscriminatorLen < 16 ||
        viadev.attributes.NicAddressLen > sizeof Card::address) {
        return adi::fail(MPIP_ERR_OTHER,
                         "NIC %s cannot carry this module: no reliable service, or limits too low",
                         viadev.attributes.Name);
    }
    rc = VipErrorCallback(viadev.nic, nullptr, on_error);
    if (rc != VIP_SUCCESS) return fail_call("VipErrorCallback", rc);
    viadev.rdma_read = (viadev.attributes.RDMAReadSupport & level()) != 0;
    const char* wanted = adi::param_text(adi::Param::rendezvous);
    VIP_BOOLEAN pinned = VIP_TRUE;
    if (VipxQueryPinned(viadev.nic, &pinned) != VIP_SUCCESS) pinned = VIP_TRUE;
    viadev.pins_memory = pinned != VIP_FALSE;
    // Where processors do the NIC's copying, and its atomic operations, the memory that it gives is mapped by
    // all.
    VIP_BOOLEAN processors = VIP_FALSE;
    if (VipxQueryAtomicScope(viadev.nic, &processors) != VIP_SUCCESS) processors = VIP_FALSE;
    viadev.mapped = !viadev.pins_memory && processors != VIP_FALSE;
    protocol::LongRules& rules = viadev.long_rules();
    rules = {};
    rules.memory = &viadev;
    rules.get = viadev.rdma_read;
    rules.wanted = protocol::Way::put;
    // A NIC that finds memory by virtual addresses is a processor that copies: then the fewer packets the
    // better, and two processors are better than one.
    if (viadev.rdma_read) {
        if (std::strcmp(wanted, "auto") == 0 && !viadev.pins_memory) rules.wanted = protocol::Way::both;
        if (std::strcmp(wanted, "both") == 0) rules.wanted = protocol::Way::both;
        if (std::strcmp(wanted, "rget") == 0) rules.wanted = protocol::Way::get;
    }
    if (std::strcmp(wanted, "r3") == 0) rules.wanted = protocol::Way::frames;
    // Where processors do the NIC's copying, each remote piece costs a system call, and packing is quicker.
    constexpr size_t kWorthADescriptor = 1024;
    rules.gap_piece = static_cast<size_t>(adi::param_number(adi::Param::gap_piece));
    if (rules.gap_piece == 0) rules.gap_piece = viadev.pins_memory ? kWorthADescriptor : SIZE_MAX;
    rules.both_from = static_cast<size_t>(adi::param_number(adi::Param::both_from));
    rules.frames_up_to = static_cast<size_t>(adi::param_number(adi::Param::r3_limit));
    const size_t eager = static_cast<size_t>(adi::param_number(adi::Param::eager_limit));
    // Four copies through packets, or one with a handshake: beyond 6 KiB the one is quicker where it is a
    // copy that follows the request at once. What the handshake is for then goes that way however short.
    const bool both = rules.wanted == protocol::Way::both;
    if (both) {
        constexpr size_t kQuickest = 6144;
        viadev.eager_limit = eager == 0 ? kQuickest : eager;
        if (!adi::param_given(adi::Param::r3_limit)) rules.frames_up_to = std::min(viadev.eager_limit, kQuickest);
    } else {
        viadev.eager_limit = eager == 0 ? MAX_DATA_SIZE : eager;
    }
    // Through a slot it is one copy on either side: a handshake costs more than another way could save.
    const bool as_long_as_fits = both && eager == 0;
    viadev.most_written = std::min(kMostWritten - sizeof(EagerInSlot), as_long_as_fits ? SIZE_MAX : viadev.eager_limit);
    return MPIP_SUCCESS;
}

void prepare_rules(const taskinfo_t* task) { choose_rules(task->ti_nprocs); }

void Via::make_connection(int rank, process_t* proc) {
    protocol::Peer& added = add_peer(static_cast<size_t>(rank), proc);
    added.lane = std::make_unique<Lane>(added);
    added.lane->piece = kMostInSlot - sizeof(Control);
    // Only sends need a connection, and they make it (docs/adi.md, Connects).
    if (on_demand) proc->p_flags |= MPIP_PROC_ATTACHED;
}

int equip(Lane* c) {
    VIP_VI_ATTRIBUTES attributes = {level(),  viadev.maxtransfersize,
                                    nullptr,  viadev.ptag,
                                    VIP_TRUE, viadev.rdma_read ? VIP_TRUE : VIP_FALSE};
    const VIP_RETURN rc = VipCreateVi(viadev.nic, &attributes, viadev.scq, viadev.cq, &c->vi);
    if (rc != VIP_SUCCESS) {
        c->vi = nullptr;
        return fail_call("VipCreateVi", rc);
    }
    // C20: everything is posted before anybody can send.
    for (int i = 0; i < viadev.credit_rules.depth + viadev.credit_rules.reserve; ++i) {
        vbuf* v = get_vbuf();
        if (v == nullptr)
            return adi::fail(MPIP_ERR_NO_MEM, "no memory for the receives of process %u", c->peer.rank);
        vbuf_init_sendrecv(v, VBUF_BUFFER_SIZE);
        v->connection = c;
        v->owner = Owner::receive_queue;
        if (const VIP_RETURN posted = VipPostRecv(c->vi, &v->desc, v->handle); posted != VIP_SUCCESS) {
            release_vbuf(v);
            return fail_call("VipPostRecv", posted);
        }
    }
    return MPIP_SUCCESS;
}

void connected(Lane* c) {
    // Credits begin here: before, nothing can be sent.
    const Card* card = card_of(viadev.task, static_cast<int>(c->peer.rank));
    c->credits.start(viadev.credit_rules, card->depth, card->reserve);
    ++viadev.by_queue;
    c->slots.counted = true;
    viadev.greeted(c->peer);
}

int do_setup(taskinfo_t* task) {
    viadev.task = task;
    viadev.me = task->ti_index;
    viadev.np = task->ti_nprocs;
    viadev.maxtransfersize = viadev.attributes.MaxTransferSize;
    viadev.maxsegments = viadev.attributes.MaxSegmentsPerDesc;
    viadev.closing = false;
    viadev.on_demand = wants_on_demand(task);
    const bool crowded = (task->ti_flags & TASK_CROWDED) != 0;
    // The other side's part would have to wait until it gets a processor.
    if (crowded) {
        viadev.long_rules().both_from = SIZE_MAX;
        viadev.long_rules().receiver_moves = true;
    }
    // Who sleeps soon, as in a crowd, is woken by packets in the queue alone.
    viadev.slots_after = viadev.mapped && !crowded ? adi::param_number(adi::Param::slots_after) : 0;
    if (viadev.slots_after != 0) asymmetric_barrier_init();
    const int peers = peers_of(task);
    int rc = create_queues(peers);
    if (rc != MPIP_SUCCESS) return rc;
    const VIP_RETURN made = VipCreatePtag(viadev.nic, &viadev.ptag);
    if (made != VIP_SUCCESS) return fail_call("VipCreatePtag", made);
    // C16: np x depth + spares.
    const size_t spares = static_cast<size_t>(adi::param_number(adi::Param::vbuf_spares));
    const size_t each = static_cast<size_t>(viadev.credit_rules.depth + viadev.credit_rules.reserve);
    const size_t posted = viadev.on_demand ? 0 : static_cast<size_t>(peers) * each;
    if (!allocate_vbufs(viadev.nic, viadev.ptag, posted + spares)) {
        return adi::fail(MPIP_ERR_NO_MEM, "no memory for %zu packet buffers", posted + spares);
    }
    viadev.make_room(static_cast<size_t>(task->ti_nprocs));  // that of this process stays empty (spec/adi C19)
    for (procinfo* info = task->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        viadev.make_connection(info->pi_proc->p_gid.pg_wrank, info->pi_proc);
    }
    look_up_own_address(task);
    if (!viadev.on_demand) return connect_all(task);
    // Other modules may serve them all.
    return task->ti_nproto[MPIP_PROTO_VIA] == 0 ? MPIP_SUCCESS : hang_out_bell(task);
}

int grow_queues(const taskinfo_t* task) {
    const int peers = peers_of(task);
    VIP_RETURN rc = VipResizeCQ(viadev.cq, receive_entries(peers));
    const VIP_ULONG entries = send_entries(peers);
    if (rc == VIP_SUCCESS && viadev.scq != nullptr) rc = VipResizeCQ(viadev.scq, entries);
    return rc == VIP_SUCCESS ? MPIP_SUCCESS : fail_call("VipResizeCQ", rc);
}

void disconnect(Lane* c) {
    if (c->vi == nullptr) return;
    adi::let_go(VipDisconnect(c->vi));
    VIP_DESCRIPTOR* desc = nullptr;
    for (;;) {
        const VIP_RETURN rc = VipSendDone(c->vi, &desc);
        if (desc == nullptr) break;
        complete_send(vbuf_of_sent(desc), rc == VIP_SUCCESS);
    }
    for (;;) {
        adi::let_go(VipRecvDone(c->vi, &desc));  // the descriptor tells whether there was one
        if (desc == nullptr) break;
        release_vbuf(vbuf_of(desc));
    }
    while (c->refused_head != nullptr) {
        vbuf* v = c->refused_head;
        c->refused_head = v->next;
        complete_send(v, false);
    }
}

void do_stop() {
    viadev.closing = true;
    for (size_t rank = 0; rank < viadev.peers().size(); ++rank) {
        Lane* c = viadev.lane(rank);
        if (c == nullptr) continue;
        if (!c->peer.lost()) c->cut();
        if (c->vi != nullptr) adi::let_go(VipDestroyVi(c->vi));
        free_slots(c);
        c->peer.proc->p_flags &= ~MPIP_PROC_ATTACHED;
    }
    viadev.forget_all();
    viadev.openings.clear();
    viadev.flow_head = viadev.chores_head = viadev.sending_head = nullptr;
    viadev.lenders.clear();
    viadev.by_queue = 0;
    free_all_registered();
    deallocate_vbufs(viadev.nic);
    if (viadev.ptag != nullptr) adi::let_go(VipDestroyPtag(viadev.nic, viadev.ptag));
    if (viadev.cq != nullptr) adi::let_go(VipDestroyCQ(viadev.cq));
    if (viadev.scq != nullptr) adi::let_go(VipDestroyCQ(viadev.scq));
    viadev.ptag = nullptr;
    viadev.cq = viadev.scq = nullptr;
}

void close_nic() {
    if (viadev.nic == nullptr) return;
    adi::let_go(VipErrorCallback(viadev.nic, nullptr, nullptr));
    silence_bell();
    adi::let_go(VipCloseNic(viadev.nic));
    take_down_bell();
    viadev.nic = nullptr;
}

}  // namespace viaduct::via
