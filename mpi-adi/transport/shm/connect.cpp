// SPDX-License-Identifier: BSD-2-Clause
// The segment of a process, and mapping those of the others.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

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
    own_ = Segment::create("cmpi-shm", segment_bytes(lanes, block_bytes_));
    Card card = {};
    if (!own_.valid()) return card;
    head_ = reinterpret_cast<SegmentHead*>(own_.data());
    head_->magic = card.magic = kMagic;
    head_->lanes = card.lanes = static_cast<uint32_t>(lanes);
    head_->block_bytes = card.block_bytes = block_bytes_;
    card.host = adi::host_number("pid");
    card.uid = static_cast<uint32_t>(::geteuid());
    card.pid = static_cast<int32_t>(::getpid());
    card.fd = own_.fd();
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
    const std::string path = "/proc/" + std::to_string(card.pid) + "/fd/" + std::to_string(card.fd);
    const size_t bytes = segment_bytes(card.lanes, card.block_bytes);
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    // It has been here and ended without MPI_Finalize. What it has sent lies in our memory and is still good; what is
    // sent to it goes nowhere.
    lane->ended = !fd.valid() && (errno == ENOENT || errno == ESRCH) && ::access("/proc/self/fd", F_OK) == 0;
    if (!fd.valid() && !lane->ended)
        return adi::fail(MPIP_ERR_OTHER, "the memory of process %d (%s) cannot be opened", rank,
                         path.c_str());
    if (lane->ended) {
        lane->segment = Segment::create("cmpi-shm", bytes);
        if (lane->segment.valid()) reinterpret_cast<SegmentHead*>(lane->segment.data())->magic = kMagic;
    } else {
        lane->segment = Segment::map(std::move(fd), bytes, Segment::Access::read_write);
        lane->pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, card.pid, 0)));
        lane->ended = !lane->pidfd.valid() && errno == ESRCH;
    }
    // Where a filter of system calls forbids that, its folder in /proc does: it never becomes another process's.
    if (!lane->pidfd.valid() && !lane->ended)
        lane->proc_dir = Fd(::open(("/proc/" + std::to_string(card.pid)).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!lane->segment.valid() || (!lane->pidfd.valid() && !lane->proc_dir.valid() && !lane->ended)) {
        return adi::fail(MPIP_ERR_OTHER, "the memory of process %d (%s) cannot be mapped", rank,
                         path.c_str());
    }
    lane->head = reinterpret_cast<SegmentHead*>(lane->segment.data());
    if (lane->head->magic != kMagic) {
        return adi::fail(MPIP_ERR_OTHER, "%s is not the memory of a process of this job", path.c_str());
    }
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
