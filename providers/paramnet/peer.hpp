// SPDX-License-Identifier: BSD-2-Clause
// Another NIC context on this host that we have connections with: its hub, its region table, its process. One
// object per peer context, shared by all connections to it, so that a thousand VIs to one peer cost one
// mapping and one watched descriptor.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/memory/region_table.hpp"
#include "core/shm/segment.hpp"
#include "providers/paramnet/arena.hpp"
#include "providers/paramnet/segment_layout.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct {
struct NicContext;
struct Mail;
}  // namespace viaduct

namespace viaduct::paramnet {

// How the peer's memory can be reached without its help.
enum class Reach : uint8_t { none, same_process, cross_copy };

struct Peer {
    NicContext* nic = nullptr;
    uint64_t context_id = 0;
    uint32_t references = 0;  // under NicContext::peers_mutex
    Segment hub_segment;
    Segment region_segment;
    Hub* hub = nullptr;
    RegionView regions;
    MappedArena arena;
    Reach reach = Reach::none;
    int pid = 0;
    uint32_t watch_id = 0;          // 0: not watched (same process)
    std::atomic<uint32_t> dead{0};  // its process has ended
};

// The peer named in `joined`, known already or made from the descriptors of the mail (all but the first,
// which is the connection segment). Null when something does not fit. Called by connection attempts, no lock
// held.
Peer* acquire_peer(NicContext&, const kagent::Joined& joined, Mail& mail);
// Gives one reference back; the last one unmaps and stops watching. No VI lock may be held.
void release_peer(Peer*);

}  // namespace viaduct::paramnet
