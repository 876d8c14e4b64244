// SPDX-License-Identifier: BSD-2-Clause
// Another NIC context on this host that we have connections with: its hub, its region table, its process. One
// object per peer context, shared by all connections to it, so that a thousand VIs to one peer cost one
// mapping and one watched descriptor.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock/limits.hpp"
#include "core/memory/region_table.hpp"
#include "core/shm/segment.hpp"
#include "providers/paramnet/arena.hpp"
#include "providers/paramnet/hub.hpp"
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
    HubView hub_view() const { return {hub, owner}; }
    RegionView regions;
    const OwnerPage* owner = nullptr;
    uint32_t life = 0;  // of its owner page when we met; 0: it cannot tell (life.hpp)
    MappedArena arena;
    Reach reach = Reach::none;
    // cross_copy: the kernel refuses to write there, or to read (forbid()).
    std::atomic<bool> no_writes{false}, no_reads{false};
    int pid = 0;                    // in our PID namespace; 0: it is not seen there
    uint32_t watch_id = 0;          // 0: not watched (same process)
    std::atomic<uint32_t> dead{0};  // its process has ended, or has become another program
    // It has exceeded the wait once (longest_wait).
    std::atomic<uint32_t> exceeded_wait{0};

    // The process has ended, or is no longer the program that the connection was made with.
    bool has_ended() const {
        return dead.load(std::memory_order_acquire) != 0 ||
               (life != 0 && owner->life.load(std::memory_order_acquire) != life);
    }
};

// Whether the end says that it is accessing memory, ours or its own.
inline bool is_busy(const EndRecord& end) {
    return (end.busy_send.load(std::memory_order_acquire) | end.busy_recv.load(std::memory_order_acquire)) !=
           0;
}

// The same of the memory with that handle.
inline bool is_busy_with(const EndRecord& end, uint32_t handle) {
    const uint32_t sending = end.busy_send.load(std::memory_order_acquire);
    const uint32_t receiving = end.busy_recv.load(std::memory_order_acquire);
    return sending == handle || receiving == handle || sending == kBusySomewhere ||
           receiving == kBusySomewhere;
}

// Longest wait, in nanoseconds, for a peer that is touching our memory when we want it back. Its copy takes
// milliseconds at most; a peer that was stopped in the middle of it must not stop us for ever, and one that
// only says so must not stop us again and again.
inline int64_t longest_wait(const Peer& peer) {
    return limit_ns(peer.exceeded_wait.load(std::memory_order_relaxed) != 0 ? TimeLimit::paramnet_copy_again
                                                                            : TimeLimit::paramnet_copy);
}

// The peer named in `joined`, known already or made from the descriptors of the mail (all but the first,
// which is the connection segment). Null when something does not fit. Called by connection attempts, no lock
// held.
Peer* acquire_peer(NicContext&, const kagent::Joined& joined, Mail& mail);
// The kernel has refused a copy between processes that it had allowed before (a seccomp filter, a change of
// user, PR_SET_DUMPABLE): from now on that is done with the peer's help. `what`: no_writes or no_reads.
void forbid(const Peer&, std::atomic<bool>& what);
// Gives one reference back; the last one unmaps and stops watching. No VI lock may be held.
void release_peer(Peer*);

}  // namespace viaduct::paramnet
