// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/peer.hpp"

#include <exception>
#include <new>

#include "core/agent/mail.hpp"
#include "core/log/log.hpp"
#include "core/process/process_number.hpp"
#include "providers/paramnet/cross_copy.hpp"
#include "providers/paramnet/life.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/progress.hpp"

namespace viaduct::paramnet {

namespace {

// Order in the mail: connection segment, region table, hub, arena, pidfd (kagent.hpp, kJoined). A peer of
// another user keeps its arena to itself.
constexpr uint32_t kWithoutArena = 2, kWithArena = 3;

void peer_process_ended(void* argument) {
    auto& peer = *static_cast<Peer*>(argument);
    peer.dead.store(1, std::memory_order_release);
    report_death(*peer.nic);
}

Reach find_reach(const NicContext& nic, const Peer& peer, const kagent::Joined& joined) {
    if (!nic.settings.cross_copy) return Reach::none;
    if (joined.same_process != 0) return Reach::same_process;
    // What is copied by number must not land in another user's process, nor in another program that this one
    // becomes behind our back.
    if (joined.same_user == 0 || peer.life == 0 || peer.has_ended()) return Reach::none;
    return probe_process(peer.pid, joined.peer_words[kWordProbeAddress], joined.peer_words[kWordProbeValue])
               ? Reach::cross_copy
               : Reach::none;
}

bool watch_process(Peer& peer, Fd process) try {
    return peer.nic->agent->watch(process.release(), peer_process_ended, &peer, &peer.watch_id) == Status::ok;
} catch (const std::exception&) {
    return false;
}

}  // namespace

Peer* acquire_peer(NicContext& nic, const kagent::Joined& joined, Mail& mail) {
    const uint32_t own = joined.descriptor_count;
    if (own != kWithArena && own != kWithoutArena) return nullptr;
    const bool has_process = mail.descriptors.size() == 1 + own + 1;
    if (!has_process && mail.descriptors.size() != 1 + own) return nullptr;
    if (joined.peer_words[kWordVersion] != kLayoutVersion ||
        joined.peer_words[kWordHubBytes] != sizeof(Hub)) {
        VIADUCT_LOG(
            error, "paramnet",
            "the peer's library lays out shared memory by version %llu, this one by version %u: both have "
            "to be of one release; start the older program again with the library of the newer one",
            static_cast<unsigned long long>(joined.peer_words[kWordVersion]), kLayoutVersion);
        return nullptr;
    }

    const std::lock_guard guard(nic.peers_mutex);
    if (const auto known = nic.peers.find(joined.peer_context_id); known != nic.peers.end()) {
        ++known->second->references;
        return known->second.get();
    }
    std::unique_ptr<Peer> peer(new (std::nothrow) Peer);
    if (!peer) return nullptr;
    peer->nic = &nic;
    peer->context_id = joined.peer_context_id;
    peer->references = 1;
    peer->region_segment = Segment::map(std::move(mail.descriptors[1]), RegionTable::segment_bytes(),
                                        Segment::Access::read_only);
    peer->hub_segment =
        Segment::map(std::move(mail.descriptors[2]), sizeof(Hub), Segment::Access::read_write);
    if (!peer->region_segment.valid() || !peer->hub_segment.valid()) return nullptr;
    if (own == kWithArena)
        peer->arena.map(std::move(mail.descriptors[3]), joined.peer_words[kWordArenaBytes]);
    peer->hub = reinterpret_cast<Hub*>(peer->hub_segment.data());
    peer->regions =
        RegionView(reinterpret_cast<const RegionEntry*>(peer->region_segment.data()), kMaxRegions);
    peer->owner =
        reinterpret_cast<const OwnerPage*>(peer->region_segment.data() + RegionTable::owner_page_at());
    peer->life = peer->owner->life.load(std::memory_order_acquire);
    if (has_ended(peer->life)) {
        // The connection is made all the same: what it has sent is still there, and its end comes behind that.
        peer->life = kEndedBefore;
        peer->dead.store(1, std::memory_order_release);
    }
    if (has_process) peer->pid = process_number(mail.descriptors.back().get());
    peer->reach = find_reach(nic, *peer, joined);
    // Before it is watched: where memory is short, nothing names it afterwards.
    Peer* made = peer.get();
    nic.peers.emplace(joined.peer_context_id, std::move(peer));
    if (joined.same_process == 0) {
        const bool watched = has_process && watch_process(*made, std::move(mail.descriptors.back()));
        // One of both has to tell of its death.
        if (!watched && made->life == 0) {
            VIADUCT_LOG(
                error, "paramnet",
                "the end of the peer's process could not be noticed here: neither a pidfd of it nor robust "
                "futexes are to be had; allow pidfd_open and set_robust_list (seccomp profile)");
            nic.peers.erase(joined.peer_context_id);
            return nullptr;
        }
    }
    return made;
}

void forbid(const Peer& peer, std::atomic<bool>& what) {
    if (what.exchange(true, std::memory_order_relaxed)) return;
    VIADUCT_LOG(
        warn, "paramnet",
        "the system does not let us %s process %d: its memory is reached with its help, which takes longer",
        &what == &peer.no_writes ? "write to" : "read from", peer.pid);
}

void release_peer(Peer* peer) {
    NicContext& nic = *peer->nic;
    std::unique_ptr<Peer> last;
    {
        const std::lock_guard guard(nic.peers_mutex);
        if (--peer->references != 0) return;
        const auto found = nic.peers.find(peer->context_id);
        last = std::move(found->second);
        nic.peers.erase(found);
    }
    if (last->watch_id != 0) nic.agent->unwatch(last->watch_id);
}

}  // namespace viaduct::paramnet
