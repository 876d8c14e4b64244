// SPDX-License-Identifier: BSD-2-Clause
// An open NIC: its hub, its endpoints by slot, its peers, its progress thread's state. Lock order: a group's
// lock, vi.recv.lock, vi.send.lock, slots_lock (last; held for a few instructions only).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/shm/segment.hpp"
#include "core/sync/biased_lock.hpp"
#include "providers/paramnet/arena.hpp"
#include "providers/paramnet/endpoint.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/peer.hpp"
#include "providers/paramnet/segment_layout.hpp"
#include "providers/paramnet/settings.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct NicContext {
    NicInfo info;
    paramnet::NicSettings settings;
    UserAgent* agent = nullptr;
    RegionTable* regions = nullptr;
    uint64_t context_id = 0;
    uint64_t probe_word = 0;  // peers read it to find out whether they reach this process

    paramnet::Arena arena;
    Segment hub_segment;
    paramnet::Hub* hub = nullptr;
    paramnet::OwnerPage* owner = nullptr;
    paramnet::HubView hub_view() const { return {hub, owner}; }

    // Doorbells (doorbells.cpp).
    std::atomic<uint32_t> rings_seen{0};      // value of hub->rings at the last draining of the doorbells
    std::atomic<uint32_t> wake_requested{0};  // our own wake(), which names no endpoint
    std::atomic<uint64_t> poll_requests[paramnet::kDoorbellWords] = {};  // our own endpoints, a bit for each slot
    std::atomic<uint64_t> own_calls[paramnet::kDoorbellWords] = {};      // those the progress thread is to look at
    uint32_t calls_seen = 0;                                             // progress thread: of hub->service_rings
    int64_t last_scan = 0;                                               // under slots_lock: the last full scan
    std::atomic<int64_t> full_scan_until{0};                             // 0: no ring of a peer has been lost

    BiasedLock slots_lock;
    Endpoint* slots[paramnet::kMaxVi] = {};  // under slots_lock
    uint32_t slots_end = 0;                  // no endpoint at or beyond
    uint32_t sleeping = 0;                   // under slots_lock: threads between sleep_begin and sleep_end

    std::mutex peers_mutex;
    std::map<uint64_t, std::unique_ptr<paramnet::Peer>> peers;

    std::atomic<uint32_t> rdma_targets{0};  // connected VIs whose memory peers may touch
    std::atomic<uint32_t> backlogs{0};      // endpoints with sends that wait for room
    paramnet::LinkFree link_free{0};        // of the link that takes what this program sends by this NIC

    // Progress thread (progress.cpp).
    std::once_flag progress_once;
    Status progress_status = Status::ok;
    std::atomic<uint32_t> progress_running{0};
    std::atomic<uint32_t> progress_stop{0};
    std::atomic<uint32_t> progress_ticking{0};
    uint32_t waiting_lanes = 0;        // progress thread only: lanes found full, or emptied for a watcher
    std::atomic<uint32_t> awaited{0};  // a thread sleeps while sends are not acknowledged: tick
    std::atomic<uint32_t> retired{0};  // endpoints with something to reap
    std::atomic<uint32_t> deaths{
        0};  // peers whose process has ended and whose endpoints were not looked at yet
};

}  // namespace viaduct

namespace viaduct::paramnet {

Status open(const OpenArgs&, NicContext** out);
void close(NicContext*);
Status describe(NicContext*, Mail* open_request);
uint32_t sleep_begin(NicContext*);
void sleep_wait(NicContext*, uint32_t key, Deadline);
void sleep_end(NicContext*);
void wake(NicContext*);
void region_removed(NicContext*, uint32_t handle, const Region& was);
Status memory_alloc(NicContext*, uint64_t bytes, uint64_t alignment, Region* out);
void memory_free(NicContext*, const Region&);
Status resolve(NicContext*, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out);

// The address of NIC number `index` of this host.
NicAddress host_address(uint32_t index);

// The endpoint in a slot, pinned so that it stays; nullptr when there is none.
Endpoint* pin(NicContext&, uint32_t slot);
void unpin(NicContext&, Endpoint&);

}  // namespace viaduct::paramnet
