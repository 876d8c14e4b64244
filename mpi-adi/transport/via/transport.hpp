// SPDX-License-Identifier: BSD-2-Clause
// The transport: one NIC, two completion queues, one tag, a lane for each peer. Names are the design's
// (spec/adi 2.2). Everything is used under the engine's lock, except lost_events.
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "mpi-adi/transport/via/lane.hpp"

namespace viaduct::via {

// A connection on its way (open.cpp).
constexpr VIP_ULONG kFirstAttempt = 300;  // ms
struct Opening {
    using Clock = std::chrono::steady_clock;
    Lane* connection;
    bool known = false;                 // the peer knows that it is wanted: it has rung, or has heard us ring
    bool asked = false;                 // our request for it is pending
    VIP_ULONG attempt = kFirstAttempt;  // how long it stays, ms
    Clock::time_point next = {};        // nothing is tried before
    Clock::time_point look = {};        // when it is looked again whether the peer lives
    Clock::time_point deaf_since = {};  // since when no bell hangs there; 0: one does
    Clock::time_point failing_since = {};  // since when each request fails; 0: the last one did not
    std::chrono::milliseconds pause{10};   // after the next ring in vain
};

class Via : public protocol::Protocol, public protocol::Memory {
public:
    using LaneClass = Lane;
    Via() : Protocol(MPIP_PROTO_VIA) {}

    // entries.cpp
    int initialize();
    bool reaches(const taskinfo_t* task, int rank) const;
    int connect(taskinfo_t* task);
    int complete(const taskinfo_t*) { return MPIP_SUCCESS; }
    void finalize();
    int progress();
    void block(unsigned timeout_us);
    // A record for the peer; in jobs that connect on demand that is all until somebody sends.
    void make_connection(int rank, process_t* proc);
    void forget_all() { drop_peers(); }
    void make_room(size_t ranks) { peers_.resize(ranks); }
    protocol::LongRules& long_rules() { return rules_; }
    Lane* lane(size_t rank) const {
        const protocol::Peer* one = peer(rank);
        return one == nullptr ? nullptr : static_cast<Lane*>(one->lane.get());
    }

    protocol::Registration* hold(void* address, size_t bytes) override;
    void release(protocol::Registration* registration) override;

    int np = 0;
    int me = 0;
    uint32_t busy_passes = 0;  // of progress
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends; nullptr: each queue is looked at
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_ULONG maxtransfersize = 0;  // of one remote write or read
    VIP_ULONG maxsegments = 2;      // of its descriptor, the address segment included
    bool rdma_read = false;
    bool pins_memory = true;
    bool mapped = false;  // what VipxAllocMemory gives, by connected processes
    VIP_NIC_ATTRIBUTES attributes = {};
    CreditRules credit_rules;
    size_t eager_limit = MAX_DATA_SIZE;
    int send_depth = 0;           // most descriptors on one send queue
    int collect_from = 0;         // from how many on finished ones are collected
    int sends_outstanding = 0;    // on all
    int local_waits = 0;          // long messages that end with the completion of a send
    std::vector<Lane*> lenders;   // whose slots are open
    size_t lent = 0;              // areas of slots
    size_t most_lenders = 32;     // each costs a look in every pass, and up to 546 KiB
    int by_queue = 0;             // connections whose packets come through the queue alone
    size_t next_lender = 0;       // who is looked at first
    uint32_t looks = 0;           // at slots alone since the queue was looked at
    long slots_after = 0;         // packets of a peer; 0: no slots are lent
    size_t most_written = 0;      // the longest message that goes into a slot at once
    uint32_t packets_in_row = 0;  // from slots, with no look in vain between them
    bool closing = false;
    taskinfo_t* task = nullptr;
    bool on_demand = false;  // connections are made when they are wanted
    std::vector<Opening> openings;
    Opening::Clock::time_point all_joined = {};  // until then some may not have called pt_addconns yet
    Lane* flow_head = nullptr;
    Lane* chores_head = nullptr;
    Lane* sending_head = nullptr;
    std::atomic<uint32_t> lost_events{0};  // counted by the error callback and the bell, on threads of theirs
    uint32_t lost_seen = 0;
};

extern Via viadev;

}  // namespace viaduct::via
