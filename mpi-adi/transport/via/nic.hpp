// SPDX-License-Identifier: BSD-2-Clause
// One open NIC: its queues, its buffers, its registrations, and the lanes that it carries. Everything is used under the
// engine's lock, except lost_events.
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

// The eager rings of all lanes (eager_ring.hpp).
struct EagerRings {
    std::vector<Lane*> lenders;   // whose slots are open
    size_t lent = 0;              // areas of slots
    size_t most_lenders = 32;     // each costs a look in every pass, and up to 546 KiB
    int by_queue = 0;             // connections whose packets come through the queue alone
    size_t next_lender = 0;       // who is looked at first
    uint32_t looks = 0;           // at slots alone since the queue was looked at
    long slots_after = 0;         // packets of a peer; 0: no slots are lent
    size_t most_written = 0;      // the longest message that goes into a slot at once
    uint32_t packets_in_row = 0;  // from slots, with no look in vain between them
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
    // Something is to be looked at from the top of a pass to come.
    void note_event() { lost_events.fetch_add(1, std::memory_order_relaxed); }

    VIP_NIC_HANDLE handle = nullptr;
    VIP_CQ_HANDLE cq = nullptr;   // receives
    VIP_CQ_HANDLE scq = nullptr;  // sends; nullptr: each queue is looked at
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_NIC_ATTRIBUTES attributes = {};
    bool rdma_read = false;
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
    EagerRings ring;
    Connects connects;

    uint32_t me = 0;
    size_t index = 0;  // of its handle in registrations, where a process has several NICs
    taskinfo_t* task = nullptr;
    std::vector<Card> cards;   // by world rank; of those that have none they are empty
    std::vector<Lane*> lanes;  // by world rank
    Lane* flow_head = nullptr;
    Lane* chores_head = nullptr;
    Lane* sending_head = nullptr;
    std::atomic<uint32_t> lost_events{0};  // counted by the error callback and the listener, on threads of theirs
    uint32_t lost_seen = 0;

private:
    VIP_ULONG receive_entries(int peers) const;
    VIP_ULONG send_entries(int peers);
};

// Says which call of VIPL failed, and how.
[[nodiscard]] int fail_call(const char* call, VIP_RETURN rc);

}  // namespace viaduct::via
