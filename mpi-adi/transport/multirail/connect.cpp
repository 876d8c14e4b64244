// SPDX-License-Identifier: BSD-2-Clause
// Making lanes, at the start and again after each end: peer requests, which neither block nor care who comes
// first, so that all lanes to all peers are made at once. Connected is not yet up: both sides first tell by
// hello what became of the connections before.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/rails.hpp"

namespace viaduct::rails {

namespace {

constexpr VIP_ULONG kAttemptMs = 1000;
constexpr auto kGreeting = std::chrono::seconds(5);
constexpr auto kFirstPause = std::chrono::milliseconds(2);
constexpr auto kLongestPause = std::chrono::milliseconds(100);
constexpr auto kForStragglers = std::chrono::seconds(3);

struct Discriminator {
    Le64 job;
    Le32 self;
    Le32 other;
    Le32 rail;
    Le32 magic;
};
static_assert(sizeof(Discriminator) == 24);

union Address {
    VIP_NET_ADDRESS head;
    unsigned char room[4 + 64 + 64];
};

Address address_of(const Card::Rail& rail, const Discriminator& discriminator) {
    Address address = {};
    address.head.HostAddressLen = rail.address_len;
    address.head.DiscriminatorLen = sizeof discriminator;
    std::memcpy(address.head.HostAddress, rail.address, rail.address_len);
    std::memcpy(address.head.HostAddress + rail.address_len, &discriminator, sizeof discriminator);
    return address;
}

// Environments lie at any address: a copy. magic 0: none that can be used.
Card card_of(const taskinfo_t* task, int rank) {
    Card card = {};
    int size = 0;
    const void* found = mpip_environment(task, MPIP_PROTO_VIA, rank, &size);
    if (found != nullptr && size == sizeof card) std::memcpy(&card, found, sizeof card);
    if (card.magic != kMagic || card.rails == 0 || card.rails > kMostRails || card.depth == 0 ||
        card.reserve < 2)
        card.magic = 0;
    return card;
}

}  // namespace

bool Rails::reaches(const taskinfo_t* task, int rank) const {
    if (rank == task->ti_index) return false;
    const Card theirs = card_of(task, rank);
    if (theirs.magic == 0) return false;
    for (size_t i = 0; i < kMostRails; ++i) {
        if (reaches_by(card_, theirs, i)) return true;
    }
    return false;
}

int Rails::attach(const taskinfo_t* task, int rank, process_t* proc) {
    const Card theirs = card_of(task, rank);
    protocol::Peer& peer = add_peer(static_cast<size_t>(rank), proc);
    auto bundle = std::make_unique<Bundle>(peer, *this);
    bundle->piece = kMostPayload;
    bundle->card = theirs;
    bundle->alone_since = Clock::now();
    if (theirs.pids == card_.pids)
        bundle->pidfd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<uint32_t>(theirs.pid), 0));
    for (const auto& rail : rails_) {
        if (!reaches_by(card_, theirs, rail->index)) continue;
        Lane& lane = bundle->lanes[rail->index];
        VIP_VI_ATTRIBUTES attributes = {
            VIP_SERVICE_RELIABLE_DELIVERY, most_stripe_, nullptr, rail->ptag, VIP_TRUE, VIP_FALSE};
        const VIP_RETURN rc = VipCreateVi(rail->nic, &attributes, rail->scq, rail->cq, &lane.vi);
        if (rc != VIP_SUCCESS)
            return adi::fail(MPIP_ERR_OTHER, "VipCreateVi(%s) answers %d", rail->name.c_str(),
                             static_cast<int>(rc));
        lane.bundle = bundle.get();
        lane.rail = rail.get();
        lane.state = LaneState::down;
        lane.next_try = Clock::now();
        ++lanes_to_make_;
    }
    bundles_.push_back(bundle.get());
    peer.lane = std::move(bundle);
    return MPIP_SUCCESS;
}

void Rails::begin(Lane& lane) {
    const auto rank = static_cast<uint32_t>(lane.bundle->peer.rank);
    const auto me = static_cast<uint32_t>(me_);
    const auto index = static_cast<uint32_t>(lane.rail->index);
    Discriminator mine, theirs;
    mine.job = theirs.job = job_;
    mine.self = theirs.other = me;
    mine.other = theirs.self = rank;
    mine.rail = theirs.rail = index;
    mine.magic = theirs.magic = kMagic;
    const Card& card = lane.bundle->card;
    // Everything is posted before the peer can send; it stays posted when an attempt fails.
    for (; lane.prepared < credit_rules_.depth + credit_rules_.reserve; ++lane.prepared) {
        if (!post_buffer(lane)) return retry_later(lane, Clock::now());
    }
    lane.credits.start(credit_rules_, card.depth, card.reserve);
    Address local = address_of(card_.rail[index], mine);
    Address remote = address_of(card.rail[index], theirs);
    if (VipConnectPeerRequest(lane.vi, &local.head, &remote.head, kAttemptMs) != VIP_SUCCESS)
        return retry_later(lane, Clock::now());
    lane.state = LaneState::connecting;
}

void Rails::retry_later(Lane& lane, Clock::time_point now) {
    lane.state = LaneState::down;
    lane.pause = std::clamp(lane.pause * 2, kFirstPause, kLongestPause);
    lane.next_try = now + lane.pause;
}

void Rails::connected(Lane& lane, Clock::time_point now) {
    ++lane.number;
    lane.their_number = lane.received = lane.told = 0;
    lane.had_frames = lane.probed = false;
    lane.echoes = 0;
    lane.state = LaneState::greeting;
    lane.greeted_by = now + kGreeting;
    send_report(lane, Kind::hello);
}

void Rails::advance(Lane& lane, Clock::time_point now) {
    switch (lane.state) {
        case LaneState::down:
            if (now >= lane.next_try) begin(lane);
            break;
        case LaneState::connecting: {
            VIP_VI_ATTRIBUTES theirs;
            const VIP_RETURN rc = VipConnectPeerDone(lane.vi, &theirs);
            if (rc == VIP_SUCCESS) {
                connected(lane, now);
            } else if (rc != VIP_NOT_DONE) {
                retry_later(lane, now);
            }
            break;
        }
        case LaneState::greeting:
            if (now >= lane.greeted_by) suspect(lane);
            break;
        default:
            break;
    }
}

void Rails::look_after_lanes(Clock::time_point now) {
    for (size_t i = 0; i < bundles_.size(); ++i) {
        for (Lane& lane : bundles_[i]->lanes) advance(lane, now);
    }
}

// All lanes of all peers at once. A peer with one lane is connected; the others are waited for a little, so
// that a job begins with all its rails.
int Rails::connect(taskinfo_t* task) {
    job_ = adi::hash(adi::kHashSeed, task->ti_job, std::strlen(task->ti_job));
    peers_.resize(static_cast<size_t>(task->ti_nprocs));
    const int rc = make_queues(std::max(1, task->ti_nproto[MPIP_PROTO_VIA]));
    if (rc != MPIP_SUCCESS) return rc;
    for (procinfo* info = task->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if (rank == task->ti_index || peers_[static_cast<size_t>(rank)] != nullptr) continue;
        const int attached = attach(task, rank, info->pi_proc);
        if (attached != MPIP_SUCCESS) return attached;
    }
    const auto start = Clock::now();
    const auto deadline = start + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    for (;;) {
        work();
        const auto now = Clock::now();
        look_after_lanes(now);
        const auto alone = std::find_if(bundles_.begin(), bundles_.end(), [](const Bundle* bundle) {
            return !bundle->peer.lost() && !bundle->peer.ready();
        });
        if (alone == bundles_.end() && (lanes_to_make_ == 0 || now - start > kForStragglers))
            return MPIP_SUCCESS;
        if (now >= deadline) {
            if (alone == bundles_.end()) return MPIP_SUCCESS;
            return adi::fail(MPIP_ERR_OTHER, "process %u could not be connected on any rail", (*alone)->peer.rank);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

}  // namespace viaduct::rails
