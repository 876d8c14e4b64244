// SPDX-License-Identifier: BSD-2-Clause
// One open NIC: its queues, its buffers, its registrations, and the lanes that it carries. Everything is used under the
// engine's lock, except events.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/connects.hpp"
#include "mpi-adi/transport/via/credits.hpp"
#include "mpi-adi/transport/via/registration.hpp"
#include "mpi-adi/transport/via/vbuf.hpp"

namespace viaduct::via {

class Lane;

// The eager rings of all lanes (ring_layout.hpp).
struct EagerRings {
    std::vector<Lane*> open_lanes;  // lanes whose rings are open
    size_t offered = 0;             // areas of slots in use
    size_t most_offered = 32;       // each costs a poll in every pass, and up to 546 KiB
    int queue_only = 0;             // connected lanes without a ring
    size_t next_polled = 0;         // index in open_lanes
    uint32_t polls = 0;             // of the rings alone, since the queue was polled
    long offer_after = 0;           // packets of a peer after which it is offered a ring; 0: none is
    size_t most_written = 0;        // the longest message that is written into one slot
    uint32_t packets_in_row = 0;    // from rings, without an empty poll between them
};

class Nic {
public:
    Nic() = default;
    Nic(const Nic&) = delete;
    Nic& operator=(const Nic&) = delete;

    [[nodiscard]] int open(const char* name);
    void close();
    // Reserve and extra receives that fit into the queues and completion queues of this NIC, in a job of so many.
    void choose_rules(int processes);
    [[nodiscard]] int make_queues(int peers);
    // Room in the completion queues for the processes that joined (spec/adi C24).
    [[nodiscard]] int grow_queues(int peers);
    void destroy_queues();
    VIP_RELIABILITY_LEVEL level() const;
    bool is_open() const { return handle != nullptr; }
    Lane* lane(size_t rank) const { return rank < lanes.size() ? lanes[rank] : nullptr; }
    // The next passes call handle_events().
    void note_event() { events.fetch_add(1, std::memory_order_relaxed); }

    VIP_NIC_HANDLE handle = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends; nullptr: each queue is polled
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_NIC_ATTRIBUTES attributes = {};
    bool rdma_read = false;
    bool atomics = false;  // on words of 4 and 8 bytes, and to processors
    bool pins_memory = true;
    bool mapped = false;  // what VipxAllocMemory gives, by connected processes

    CreditRules credit_rules;
    size_t eager_limit = MAX_DATA_SIZE;
    int send_depth = 0;         // most descriptors on one send queue
    int collect_from = 0;       // from how many on finished ones are collected
    int sends_outstanding = 0;  // on all
    int local_waits = 0;        // long messages that end with the completion of a send

    VbufPool buffers{*this};
    RegistrationCache registrations{*this};
    EagerRings rings;
    Connects connects;

    uint32_t me = 0;
    size_t index = 0;  // of its handle in registrations, where a process has several NICs
    taskinfo_t* task = nullptr;
    std::vector<Card> cards;   // by world rank; of those that have none they are empty
    uint64_t cards_since = UINT64_MAX;  // boot_ticks() when they were read last; until then a number alone counts
    std::vector<Lane*> lanes;  // by world rank
    Lane* flow_head = nullptr;
    Lane* deferred_head = nullptr;
    Lane* sending_head = nullptr;
    std::atomic<uint32_t> events{0};  // counted by the error callback and the listener, on threads of theirs
    uint32_t events_seen = 0;

private:
    VIP_ULONG receive_entries(int peers) const;
    VIP_ULONG send_entries(int peers);
};

// Says which call of VIPL failed, and how.
[[nodiscard]] int fail_call(const char* call, VIP_RETURN rc);

}  // namespace viaduct::via
