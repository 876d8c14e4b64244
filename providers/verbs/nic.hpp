// SPDX-License-Identifier: BSD-2-Clause
// An open NIC: the device, its endpoints by slot, its regions, and what its progress thread looks after.
// Lock order: connect_mutex, a group's lock, vi.recv.lock, vi.send.lock, then (each alone) a group's cq_lock,
// links_mutex, groups_mutex.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/shm/segment.hpp"
#include "core/shm/wake_event.hpp"
#include "providers/verbs/endpoint.hpp"
#include "providers/verbs/link.hpp"
#include "providers/verbs/mapping.hpp"
#include "providers/verbs/private_data.hpp"
#include "providers/verbs/regions.hpp"
#include "providers/verbs/settings.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// Whose events those of an rdma_cm id are.
struct IdOwner {
    ConnectOp* op = nullptr;  // an attempt under way
    Link* link = nullptr;     // a connection
    uint64_t incoming = 0;    // a request that waits for accept or reject
    bool listener = false;
};

// A request that reached a waiter and has not been answered.
struct Incoming {
    rdma_cm_id* id = nullptr;
    PrivateData private_data;
    uint8_t reads = 1;  // RDMA reads the requester serves at a time
    bool closed = false;
};

}  // namespace viaduct::verbs

namespace viaduct {

struct NicContext {
    NicInfo info;
    verbs::NicSettings settings;
    UserAgent* agent = nullptr;
    RegionTable* regions = nullptr;

    ibv_context* device = nullptr;
    ibv_pd* pd = nullptr;
    in_addr ip{};
    uint8_t port = 1;           // of the device
    uint8_t reads = 0;          // RDMA reads that may be under way per connection
    uint32_t most_entries = 0;  // of one completion queue of the device
    verbs::RegionKeys keys;

    std::atomic<Endpoint*> slots[verbs::kMaxVi] = {};

    std::mutex groups_mutex;
    std::vector<Group*> groups;

    // Sleeping (sleep.cpp).
    ibv_comp_channel* channel = nullptr;  // of the groups' completion queues
    WakeEvent wake_event;
    std::atomic<uint32_t> wakes{0};  // counted; those that sleep without the channel wait on it
    std::atomic<uint32_t> sleepers{0};
    std::atomic<uint32_t> leader{0};

    // Control QPs (control_qp.cpp).
    ibv_comp_channel* control_channel = nullptr;
    ibv_cq* control_cq = nullptr;

    // Connecting (connect.cpp, listener.cpp): under connect_mutex.
    std::mutex connect_mutex;
    std::condition_variable connect_changed;
    rdma_event_channel* events = nullptr;
    std::unordered_map<rdma_cm_id*, verbs::IdOwner> owners;
    std::unordered_map<uint16_t, rdma_cm_id*> listeners;
    std::list<ConnectOp*> waiting;   // listen operations, first come first served
    std::list<ConnectOp*> peers;     // peer requests not decided
    std::list<ConnectOp*> retrying;  // attempts that try again at a time
    std::unordered_map<uint64_t, verbs::Incoming> incoming;
    uint64_t next_incoming = 1;
    uint32_t nonce_base = 0;  // upper half of all nonces of this context
    uint32_t next_nonce = 1;
    std::vector<rdma_cm_id*> ids_to_destroy;  // ids to be destroyed by the progress thread

    // Connections: under links_mutex.
    std::mutex links_mutex;
    std::vector<verbs::Link*> links;    // all, by the number that their control QP's work requests carry
    std::vector<verbs::Link*> dropped;  // of attempts that failed
    std::vector<verbs::Link*> leaving;  // disconnected: the progress thread disconnects and frees them
    uint32_t next_generation = 1;

    // Progress thread (progress.cpp).
    std::once_flag progress_once;
    Status progress_status = Status::ok;
    std::atomic<uint32_t> progress_running{0};
    std::atomic<uint32_t> progress_stop{0};
    Deadline port_lost_at = kNever;     // the port is down: when its connections are lost (port_watch.cpp)
    std::atomic<uint32_t> sends_watched{0};  // sends may be out (queue_watch.cpp)
    Deadline look_at_sends_at = kNever;
    uint32_t empty_looks = 0;  // in a row
    std::atomic<uint32_t> backlogs{0};  // endpoints whose sends wait for room: completions move them on
    WakeEvent progress_event;
};

}  // namespace viaduct

namespace viaduct::verbs {

Status open(const OpenArgs&, NicContext** out);
void close(NicContext*);
Status describe(NicContext*, Mail* open_request);
Status region_added(NicContext*, uint32_t handle, const Region&);
Status region_changed(NicContext*, uint32_t handle, const Region& now);
void region_removed(NicContext*, uint32_t handle, const Region& was);
Status resolve(NicContext*, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out);

// sleep.cpp
uint32_t sleep_begin(NicContext*);
void sleep_wait(NicContext*, uint32_t key, Deadline);
void sleep_end(NicContext*);
void wake(NicContext*);
// Takes the completion channel's events: sleepers poll again.
void drain_channel(NicContext&);

}  // namespace viaduct::verbs
