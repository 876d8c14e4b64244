// SPDX-License-Identifier: BSD-2-Clause
// The rails from opening to end: which there are, what is published of them, which peer is reached by which, and
// memory that all of them have registered.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/clock/limits.hpp"
#include "core/process/process_age.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {

// The names in CMPI_VIA_NICS; for "all", every NIC there is.
std::vector<std::string> wanted_nics() {
    const std::string given = adi::param_text(adi::Param::via_nics);
    std::vector<std::string> names;
    if (given == "all") {
        for (size_t i = 0; i < kMostRails; ++i) names.push_back("nic" + std::to_string(i));
        return names;
    }
    for (size_t from = 0; from <= given.size();) {
        const size_t comma = std::min(given.find(',', from), given.size());
        if (comma > from) names.push_back(given.substr(from, comma - from));
        from = comma + 1;
    }
    return names;
}

// Environments lie at any address: a copy. magic 0: none that can be used.
Card card_of(const taskinfo_t* task, int rank) {
    Card card = {};
    int size = 0;
    const void* found = mpip_environment(task, MPIP_PROTO_VIA, rank, &size);
    if (found != nullptr && size == sizeof card) std::memcpy(static_cast<void*>(&card), found, sizeof card);
    if (card.magic != kMagic || card.rails == 0 || card.rails > kMostRails || card.depth == 0 || card.reserve < 2)
        card.magic = 0;
    return card;
}

// The registrations of one piece of memory with all rails.
struct Held : protocol::Registration {
    protocol::Registration* by_rail[kMostRails] = {};
};

}  // namespace

int Multirail::initialize() {
    int rc = MPIP_SUCCESS;
    for (const std::string& name : wanted_nics()) {
        if (rails_.size() == kMostRails) break;
        std::unique_ptr<Rail> rail = name == "tcp" ? open_tcp_rail() : open_via_rail(name.c_str());
        if (rail == nullptr) {
            rc = MPIP_ERR_OTHER;
            continue;
        }
        const auto same = std::find_if(rails_.begin(), rails_.end(),
                                       [&](const auto& other) { return other->device() == rail->device(); });
        if (same == rails_.end()) {
            rails_.push_back(std::move(rail));
        } else {
            rail->finalize();
            rc = adi::fail(MPIP_ERR_ARG, "%s and %s are the same NIC", (*same)->name().c_str(), name.c_str());
        }
    }
    // One NIC that is not there does not keep the others from working.
    if (rails_.empty())
        return rc != MPIP_SUCCESS ? rc : adi::fail(MPIP_ERR_ARG, "CMPI_VIA_NICS names no NIC");
    most_stripe_ = kMostStripe;
    whole_limit_ = SIZE_MAX;
    for (const auto& rail : rails_) {
        most_stripe_ = std::min(most_stripe_, rail->most_transfer());
        whole_limit_ = std::min(whole_limit_, rail->whole_limit());
    }
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_VIA].pt_prop;
    properties = {};
    properties.mp_exclusivity = 20;
    properties.mp_latency_ns = 200;
    properties.mp_bandwidth_mb = static_cast<int>(10000 * rails_.size());
    properties.mp_eager_limit = properties.mp_first_frag = whole_limit_;
    properties.mp_min_frag = kLeastStripe;
    properties.mp_max_frag = most_stripe_;
    properties.mp_cache_size = 256;
    // What is read cannot go by a lane that reaches no memory; what is written can, in parts.
    const bool get = std::all_of(rails_.begin(), rails_.end(),
                                 [](const auto& rail) { return rail->rules() != nullptr && rail->rules()->get; });
    properties.mp_flags = MPIP_PROP_PUT | (get ? MPIP_PROP_GET : 0);
    mpip_protocols[MPIP_PROTO_VIA].pt_mtu = static_cast<unsigned>(whole_limit_);
    return MPIP_SUCCESS;
}

const Card& Multirail::make_card(const taskinfo_t* task) {
    if (!own_mapping_.valid()) own_mapping_ = Segment::create("cmpi-rails", kOwnMapping);
    card_ = {};
    card_.magic = kMagic;
    card_.pid = static_cast<uint32_t>(::getpid());
    card_.host = adi::host_number("net");
    card_.pids = adi::host_number("pid");
    card_.rails = static_cast<uint8_t>(rails_.size());
    for (size_t i = 0; i < rails_.size(); ++i) rails_[i]->describe(task, &card_, i);
    return card_;
}

bool Multirail::reaches(const taskinfo_t* task, int rank) const {
    if (rank == task->ti_index) return false;
    const Card theirs = card_of(task, rank);
    for (size_t i = 0; i < rails_.size() && theirs.magic != 0; ++i) {
        if (rails_[i]->reaches(task, rank, card_, theirs, i)) return true;
    }
    return false;
}

void Multirail::attach(const taskinfo_t* task, int rank, process_t* proc) {
    const Card theirs = card_of(task, rank);
    protocol::Peer& peer = add_peer(static_cast<size_t>(rank), proc);
    auto made = std::make_unique<MultiLane>(peer, *this);
    MultiLane& lane = *made;
    peer.lane = std::move(made);
    // A lane has its hello later than now, so a number that still means a process of now means the peer.
    if (theirs.pids == card_.pids)
        lane.process = WatchedProcess(static_cast<pid_t>(static_cast<uint32_t>(theirs.pid)), boot_ticks());
    for (size_t i = 0; i < rails_.size(); ++i) lane.add(*rails_[i], i, task, theirs, card_);
    lanes_.push_back(&lane);
}

// All lanes to all processes at once. A process with one lane is connected; the others are waited for a little, so that
// a job begins with all its rails.
int Multirail::connect(taskinfo_t* task) {
    peers_.resize(static_cast<size_t>(task->ti_nprocs));
    for (const auto& rail : rails_) {
        const int rc = rail->set_up(task, std::max(1, task->ti_nproto[MPIP_PROTO_VIA]));
        if (rc != MPIP_SUCCESS) return rc;
    }
    const auto with_memory =
        std::find_if(rails_.begin(), rails_.end(), [](const auto& rail) { return rail->rules() != nullptr; });
    if (with_memory != rails_.end()) {
        rules_ = *(*with_memory)->rules();
        rules_.get = (mpip_protocols[MPIP_PROTO_VIA].pt_prop.mp_flags & MPIP_PROP_GET) != 0;
        if (!rules_.get && rules_.wanted != protocol::Method::frames) rules_.wanted = protocol::Method::put;
        rules_.memory = this;
        rules_.reports_parts = true;
    }
    for (procinfo* info = task->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if (rank == task->ti_index || peers_[static_cast<size_t>(rank)] != nullptr) continue;
        attach(task, rank, info->pi_proc);
    }
    const auto start = Clock::now();
    const auto deadline = start + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    for (;;) {
        work();
        const auto now = Clock::now();
        for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->run_link_timers(now);
        const auto alone = std::find_if(lanes_.begin(), lanes_.end(), [](const MultiLane* lane) {
            return !lane->peer.lost() && !lane->peer.ready();
        });
        if (alone == lanes_.end() &&
            (!any_connecting() || now - start > std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_late_rail))))
            return MPIP_SUCCESS;
        if (now >= deadline) {
            if (alone == lanes_.end()) return MPIP_SUCCESS;
            return adi::fail(MPIP_ERR_OTHER, "process %u could not be connected on any rail", (*alone)->peer.rank);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

protocol::Registration* Multirail::acquire(void* address, size_t bytes) {
    auto held = std::make_unique<Held>();
    held->base = reinterpret_cast<uintptr_t>(address);
    held->bytes = bytes;
    bool any = false;
    for (size_t i = 0; i < rails_.size(); ++i) {
        protocol::Memory* memory = rails_[i]->memory();
        held->by_rail[i] = memory == nullptr ? nullptr : memory->acquire(address, bytes);
        if (held->by_rail[i] == nullptr) continue;
        held->handle[i] = held->by_rail[i]->handle[0];
        any = true;
    }
    return any ? held.release() : nullptr;
}

void Multirail::release(protocol::Registration* registration) {
    const std::unique_ptr<Held> held(static_cast<Held*>(registration));
    for (size_t i = 0; i < rails_.size(); ++i) {
        if (held->by_rail[i] != nullptr) rails_[i]->memory()->release(held->by_rail[i]);
    }
}

size_t Multirail::describe(int rank, mpip_rail* out, size_t room) const {
    const MultiLane* lane = rank < 0 ? nullptr : this->lane(static_cast<size_t>(rank));
    size_t count = 0;
    for (size_t i = 0; lane != nullptr && i < kMostRails && count < room; ++i) {
        const Link& link = lane->links[i];
        if (link.rail == nullptr) continue;
        out[count++] = {link.rail->name().c_str(), link.state == LinkState::up, link.frames,    link.stripe_bytes,
                        link.losses,               link.bandwidth / 1e6,        link.latency_ns};
    }
    return count;
}

void Multirail::finalize() {
    for (MultiLane* lane : lanes_) {
        if (!lane->peer.lost()) lane->cut();
    }
    for (const auto& one : peers_) {
        if (one != nullptr) one->proc->p_flags &= ~MPIP_PROC_ATTACHED;
    }
    for (const auto& rail : rails_) rail->finalize();
    lanes_.clear();
    drop_peers();
    rails_.clear();
    own_mapping_.reset();
    opened_ = suspects_ = measures_ = connecting_ = false;
}

}  // namespace viaduct::multirail
