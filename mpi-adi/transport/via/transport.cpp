// SPDX-License-Identifier: BSD-2-Clause
// The transport from set-up to end (spec/adi 3, C13-C21, C27).
#include "mpi-adi/transport/via/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/process/process_age.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/ring_layout.hpp"

namespace viaduct::via {

namespace {

int peers_of(const taskinfo_t* task) { return std::max(1, task->ti_nproto[MPIP_PROTO_VIA]); }

// C21: the name service looks up the own address as the design does; the address that the NIC reports is used.
void look_up_own_address(const Nic& nic, taskinfo_t* task) {
    union {
        VIP_NET_ADDRESS head;
        unsigned char room[128];
    } own = {};
    if (VipNSInit(nic.handle, nullptr) != VIP_SUCCESS) return;
    char* host = task->ti_procs[task->ti_index].pi_host;
    if (*host != '\0') adi::ignore_result(VipNSGetHostByName(nic.handle, host, &own.head, 0));
    adi::ignore_result(VipNSShutdown(nic.handle));
}

}  // namespace

// How long messages are moved over this kind of NIC, and from which length on a message is long.
void ViaTransport::choose_methods() {
    rules_ = {};
    rules_.memory = this;
    rules_.get = nic.rdma_read;
    rules_.wanted = protocol::Method::put;
    const char* wanted = adi::param_text(adi::Param::rendezvous);
    // On a NIC that does not pin memory, processors copy: then few packets are best, and two processors copy faster.
    if (nic.rdma_read) {
        if (std::strcmp(wanted, "auto") == 0 && !nic.pins_memory) rules_.wanted = protocol::Method::both;
        if (std::strcmp(wanted, "both") == 0) rules_.wanted = protocol::Method::both;
        if (std::strcmp(wanted, "rget") == 0) rules_.wanted = protocol::Method::get;
    }
    if (std::strcmp(wanted, "r3") == 0) rules_.wanted = protocol::Method::frames;
    // Where processors do the NIC's copying, each remote piece costs a system call, and packing is quicker.
    constexpr size_t kWorthADescriptor = 1024;
    rules_.gap_piece = static_cast<size_t>(adi::param_number(adi::Param::gap_piece));
    if (rules_.gap_piece == 0) rules_.gap_piece = nic.pins_memory ? kWorthADescriptor : SIZE_MAX;
    rules_.both_from = static_cast<size_t>(adi::param_number(adi::Param::both_from));
    rules_.frames_up_to = static_cast<size_t>(adi::param_number(adi::Param::r3_limit));
    const size_t eager = static_cast<size_t>(adi::param_number(adi::Param::eager_limit));
    // Four copies through packets, or one copy after a handshake: beyond 6 KiB the latter is faster where the copy
    // follows the request at once. A message that needs the handshake then goes by remote access however short it is.
    const bool both = rules_.wanted == protocol::Method::both;
    if (both) {
        constexpr size_t kQuickest = 6144;
        nic.eager_limit = eager == 0 ? kQuickest : eager;
        if (!adi::param_given(adi::Param::r3_limit)) rules_.frames_up_to = std::min(nic.eager_limit, kQuickest);
    } else {
        nic.eager_limit = eager == 0 ? MAX_DATA_SIZE : eager;
    }
    // Through a slot it is one copy on each side: a handshake costs more than remote access could save.
    const bool as_long_as_fits = both && eager == 0;
    nic.rings.most_written = std::min(kMostWritten - sizeof(EagerInSlot), as_long_as_fits ? SIZE_MAX : nic.eager_limit);
}

int ViaTransport::open(const char* name) {
    const int rc = nic.open(name);
    if (rc == MPIP_SUCCESS) {
        choose_methods();
    } else {
        nic.close();
    }
    return rc;
}

int ViaTransport::initialize() {
    if (!nic.is_open()) {
        const char* given = adi::param_text(adi::Param::via_device);
        const int rc = open(*given != '\0' ? given : "nic0");
        if (rc != MPIP_SUCCESS) return rc;
    }
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_VIA].pt_prop;
    properties = {};
    properties.mp_exclusivity = 20;
    properties.mp_latency_ns = 100;
    properties.mp_bandwidth_mb = 10000;
    properties.mp_eager_limit = nic.eager_limit;
    properties.mp_first_frag = MAX_DATA_SIZE;
    properties.mp_min_frag = kR3Data;
    properties.mp_max_frag = nic.attributes.MaxTransferSize;
    properties.mp_cache_size = 256;
    properties.mp_flags = MPIP_PROP_PUT | (nic.rdma_read ? MPIP_PROP_GET : 0);
    if (nic.level() == VIP_SERVICE_RELIABLE_RECEPTION) properties.mp_flags |= MPIP_PROP_PLACED;
    if (nic.atomics) properties.mp_flags |= MPIP_PROP_WORDS;
    mpip_protocols[MPIP_PROTO_VIA].pt_mtu = VBUF_BUFFER_SIZE;
    return MPIP_SUCCESS;
}

const Card& ViaTransport::make_card(const taskinfo_t* task) {
    nic.choose_rules(task->ti_nprocs);
    if (wants_on_demand(task)) nic.connects.page.open();
    return card_ = via::make_card(nic);
}

bool ViaTransport::reaches(const taskinfo_t* all, int rank) const {
    if (rank == all->ti_index) return false;
    const Card* mine = card_of(all, all->ti_index);
    const Card* theirs = card_of(all, rank);
    return mine != nullptr && theirs != nullptr && via::reaches(nic, *mine, *theirs);
}

// A record for the peer; in jobs that connect on demand it is connected with the first message.
protocol::Peer& ViaTransport::make_connection(int rank, process_t* proc, protocol::UpperLayer* upper) {
    protocol::Peer& added = add_peer(static_cast<size_t>(rank), proc, upper);
    auto lane = std::make_unique<Lane>(added, nic);
    lane->piece = kMostInSlot - sizeof(Control);
    lane->known_since = nic.cards_since;
    nic.lanes[static_cast<size_t>(rank)] = lane.get();
    added.lane = std::move(lane);
    // Only sends need a connection, and they make it (docs/adi.md, Connects).
    if (nic.connects.on_demand) proc->p_flags |= MPIP_PROC_ATTACHED;
    return added;
}

void ViaTransport::renew(protocol::Peer& peer) {
    Protocol::renew(peer);
    drop_attempt(nic.lanes[peer.rank]);
    via::renew(nic.lanes[peer.rank]);
}

void ViaTransport::note_cards(const taskinfo_t* task) {
    nic.cards_since = boot_ticks();
    nic.cards.resize(static_cast<size_t>(task->ti_nprocs));
    for (int rank = 0; rank < task->ti_nprocs; ++rank) {
        if (const Card* card = card_of(task, rank)) nic.cards[static_cast<size_t>(rank)] = *card;
    }
}

int ViaTransport::set_up(taskinfo_t* task, int peers) {
    nic.task = task;
    nic.me = static_cast<uint32_t>(task->ti_index);
    const bool crowded = (task->ti_flags & TASK_CROWDED) != 0;
    // The part of the other side would wait until that gets a processor.
    if (crowded) {
        rules_.both_from = SIZE_MAX;
        rules_.receiver_moves = true;
    }
    // Where ranks are more than processors, waiting processes sleep soon, and only packets in the queue wake them.
    nic.rings.offer_after = nic.mapped && !crowded ? adi::param_number(adi::Param::eager_ring_after) : 0;
    if (nic.rings.offer_after != 0) asymmetric_barrier_init();
    const int rc = nic.make_queues(peers);
    if (rc != MPIP_SUCCESS) return rc;
    // C16: np x depth + spares.
    const size_t spares = static_cast<size_t>(adi::param_number(adi::Param::vbuf_spares));
    const size_t each = static_cast<size_t>(nic.credit_rules.first_receives());
    const size_t posted = nic.connects.on_demand ? 0 : static_cast<size_t>(peers) * each;
    if (!nic.buffers.grow(posted + spares))
        return adi::fail(MPIP_ERR_NO_MEM, "no memory for %zu packet buffers", posted + spares);
    peers_.resize(static_cast<size_t>(task->ti_nprocs));  // that of this process stays empty (spec/adi C19)
    nic.lanes.resize(peers_.size());
    return MPIP_SUCCESS;
}

int ViaTransport::do_setup(taskinfo_t* task) {
    nic.connects.on_demand = wants_on_demand(task);
    note_cards(task);
    const int rc = set_up(task, peers_of(task));
    if (rc != MPIP_SUCCESS) return rc;
    for (procinfo* info = task->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next)
        make_connection(info->pi_proc->p_gid.pg_wrank, info->pi_proc);
    look_up_own_address(nic, task);
    if (!nic.connects.on_demand) return connect_all(nic);
    // Other modules may serve them all.
    return task->ti_nproto[MPIP_PROTO_VIA] == 0 ? MPIP_SUCCESS : nic.connects.listener.start(nic, task);
}

int ViaTransport::join(taskinfo_t* task, int peers) {
    peers_.resize(static_cast<size_t>(task->ti_nprocs));
    nic.lanes.resize(peers_.size());
    nic.task = task;
    nic.connects.page.look_again();
    return nic.grow_queues(peers);
}

// At first, and again when processes join.
int ViaTransport::connect(taskinfo_t* all) {
    if (nic.cq == nullptr) return do_setup(all);
    int rc = join(all, peers_of(all));
    if (rc != MPIP_SUCCESS) return rc;
    note_cards(all);
    nic.connects.on_demand = wants_on_demand(all);
    nic.connects.all_joined =
        std::chrono::steady_clock::now() + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    rc = nic.connects.on_demand ? nic.connects.listener.start(nic, all) : MPIP_SUCCESS;
    if (rc != MPIP_SUCCESS) return rc;
    for (procinfo* info = all->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if ((info->pi_proc->p_flags & MPIP_PROC_ATTACHED) != 0 || rank == all->ti_index) continue;
        if (peer(static_cast<size_t>(rank)) == nullptr) make_connection(rank, info->pi_proc);
    }
    return nic.connects.on_demand ? MPIP_SUCCESS : connect_all(nic);
}

void ViaTransport::do_stop() {
    for (Lane* c : nic.lanes) {
        if (c == nullptr) continue;
        if (!c->peer.lost()) c->cut();
        if (c->vi != nullptr) adi::ignore_result(VipDestroyVi(c->vi));
        free_ring(c);
        c->peer.proc->p_flags &= ~MPIP_PROC_ATTACHED;
    }
    drop_peers();
    nic.lanes.clear();
    nic.connects.attempts.clear();
    nic.flow_head = nic.deferred_head = nic.sending_head = nullptr;
    nic.rings.open_lanes.clear();
    nic.rings.queue_only = 0;
    nic.destroy_queues();
}

void ViaTransport::finalize() {
    if (nic.cq != nullptr) do_stop();
    nic.close();
}

}  // namespace viaduct::via
