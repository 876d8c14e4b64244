// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/peer.hpp"

#include <new>

#include "core/agent/mail.hpp"
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
    if (peer.life == 0) return Reach::none;  // it could become another program behind our back
    return probe_process(joined.peer_pid, joined.peer_words[kWordProbeAddress],
                         joined.peer_words[kWordProbeValue])
               ? Reach::cross_copy
               : Reach::none;
}

}  // namespace

Peer* acquire_peer(NicContext& nic, const kagent::Joined& joined, Mail& mail) {
    const uint32_t own = joined.descriptor_count;
    if ((own != kWithArena && own != kWithoutArena) || mail.descriptors.size() != 1 + own + 1) return nullptr;
    if (joined.peer_words[kWordVersion] != kLayoutVersion || joined.peer_words[kWordHubBytes] != sizeof(Hub))
        return nullptr;

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
    peer->owner = reinterpret_cast<const OwnerPage*>(peer->region_segment.data() + RegionTable::owner_page_at());
    peer->life = peer->owner->life.load(std::memory_order_acquire);
    if (has_ended(peer->life)) return nullptr;
    peer->pid = joined.peer_pid;
    peer->reach = find_reach(nic, *peer, joined);
    if (joined.same_process == 0 && nic.agent->watch(mail.descriptors.back().release(), peer_process_ended,
                                                     peer.get(), &peer->watch_id) != Status::ok)
        return nullptr;  // without the watch a dead peer would never be noticed
    Peer* made = peer.get();
    nic.peers.emplace(joined.peer_context_id, std::move(peer));
    return made;
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
