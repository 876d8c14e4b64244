// SPDX-License-Identifier: BSD-2-Clause
// The segment of a process, and mapping those of the others.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/process/process_age.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/shm/shm.hpp"

namespace viaduct::shm {

namespace {

// Environments lie at any address: a copy. magic 0: none that can be used.
Card card_of(const taskinfo_t* task, int rank) {
    Card card = {};
    int size = 0;
    const void* found = mpip_environment(task, MPIP_PROTO_SHM, rank, &size);
    if (found != nullptr && size == sizeof card) std::memcpy(&card, found, sizeof card);
    const bool good = card.magic == kMagic && card.block_bytes >= 4096 && card.block_bytes <= 1 << 26 &&
                      card.block_bytes % kLineBytes == 0;
    if (!good) card.magic = 0;
    return card;
}

// Several frames find room in the ring at a time.
size_t piece_for(size_t block_bytes) {
    return std::min<size_t>(block_bytes / 8, 1 << 20) / kLineBytes * kLineBytes;
}

}  // namespace

int Shm::initialize() {
    asymmetric_barrier_init();
    block_bytes_ = rounded(static_cast<size_t>(adi::param_number(adi::Param::shm_ring)));
    piece_ = piece_for(block_bytes_);
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_SHM].pt_prop;
    properties = {};
    properties.mp_exclusivity = 50;
    properties.mp_latency_ns = 60;
    properties.mp_bandwidth_mb = 20000;
    properties.mp_eager_limit = properties.mp_first_frag = properties.mp_max_frag = piece_;
    properties.mp_min_frag = kLineBytes;
    properties.mp_cache_size = 256;
    return MPIP_SUCCESS;
}

Card Shm::card(const taskinfo_t* task) {
    const size_t lanes = static_cast<size_t>(task->ti_nprocs);
    Card card = {};
    own_ = offer_memory("cmpi-shm", segment_bytes(lanes, block_bytes_), &card.memory);
    if (!own_.valid()) return card;
    head_ = reinterpret_cast<SegmentHead*>(own_.data());
    card.magic = kMagic;
    card.lanes = static_cast<uint32_t>(lanes);
    card.block_bytes = block_bytes_;
    card.host = adi::host_number("pid");
    card.uid = static_cast<uint32_t>(::geteuid());
    card.mapped_at = reinterpret_cast<uintptr_t>(own_.data());
    return card;
}

bool Shm::reaches(const taskinfo_t* task, int rank) const {
    if (rank == task->ti_index) return false;
    const Card mine = card_of(task, task->ti_index);
    const Card theirs = card_of(task, rank);
    return mine.magic != 0 && theirs.magic != 0 && theirs.host == mine.host && theirs.uid == mine.uid &&
           theirs.lanes == mine.lanes;
}

int Shm::attach(const taskinfo_t* task, int rank, process_t* proc) {
    const Card card = card_of(task, rank);
    protocol::Peer& peer = add_peer(static_cast<size_t>(rank), proc);
    auto made = std::make_unique<Lane>(peer, *this);
    Lane* const lane = made.get();
    peer.lane = std::move(made);
    const size_t bytes = segment_bytes(card.lanes, card.block_bytes);
    // The process before the memory: once that is found there, this number has been its since the card was made.
    const int process = card.memory.process;
    lane->process = WatchedProcess(process, boot_ticks());
    const Opened found = open_offered(card.memory, bytes, &lane->segment);
    // It has been here and ended without MPI_Finalize. What it has sent lies in our memory and is still good; what is
    // sent to it goes nowhere.
    const bool mapped = lane->process.note_mapping(card.mapped_at, bytes);
    lane->ended = is_withdrawn(found) && !mapped;
    if (lane->ended) {
        lane->process = {};
        lane->segment = Segment::create("cmpi-shm", bytes);
    } else if (found != Opened::ok) {
        return adi::fail(MPIP_ERR_OTHER, "the memory of process %d (number %d) cannot be opened: %s", rank, process,
                         reason(found));
    }
    if (!lane->segment.valid())
        return adi::fail(MPIP_ERR_NO_MEM, "there is no memory in place of that of process %d (number %d)", rank,
                         process);
    lane->head = reinterpret_cast<SegmentHead*>(lane->segment.data());
    lane->out = Ring(lane->segment.data(), static_cast<size_t>(task->ti_index), card.block_bytes);
    lane->in = Ring(own_.data(), static_cast<size_t>(rank), block_bytes_);
    lane->piece = std::min(piece_, piece_for(card.block_bytes));
    lanes_.push_back(lane);
    lane_ready(peer);
    return MPIP_SUCCESS;
}

int Shm::connect(taskinfo_t* task) {
    peers_.resize(static_cast<size_t>(task->ti_nprocs));
    for (procinfo* info = task->ti_proto[MPIP_PROTO_SHM]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if (rank == task->ti_index || peers_[static_cast<size_t>(rank)] != nullptr) continue;
        const int rc = attach(task, rank, info->pi_proc);
        if (rc != MPIP_SUCCESS) return rc;
    }
    return MPIP_SUCCESS;
}

void Lane::cut() { shm.lanes_.erase(std::remove(shm.lanes_.begin(), shm.lanes_.end(), this), shm.lanes_.end()); }

void Shm::finalize() {
    lanes_.clear();
    drop_peers();
    own_.reset();
    head_ = nullptr;
}

}  // namespace viaduct::shm
