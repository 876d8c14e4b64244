// SPDX-License-Identifier: BSD-2-Clause
// The part of a VI that the user agent and the NIC provider share: its two work queues, its traits, how
// completions are made. The user agent owns it; a provider sees it through the contract of
// viaduct/provider.hpp. Allocated from pools that are never given back, so that a pointer once valid can
// always be locked and its handle looked at again.
#pragma once

#include <vipl.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/memory/region_table.hpp"
#include "core/stats/vi_stats.hpp"
#include "core/sync/biased_lock.hpp"
#include "core/vi/cause.hpp"
#include "core/vi/completion_queue.hpp"
#include "core/vi/descriptor.hpp"
#include "viaduct/types.hpp"

namespace viaduct {

struct ViCore;
struct Endpoint;  // the provider's part of a VI

// What a completion has to wake, besides being found by polling. One per CQ and one per NIC (for queues
// without a CQ).
struct CompletionTarget {
    CompletionRing ring;                // empty capacity when this is no CQ
    std::atomic<uint32_t> sleepers{0};  // threads (or armed notifications) waiting for an entry
};

// A work queue: a ring of descriptor pointers in posting order. Completions are made strictly in that order.
// posted >= taken >= completed >= dequeued, free-running, all under `lock`.
struct alignas(128) WorkQueue {
    BiasedLock lock;
    uint32_t posted = 0;
    uint32_t taken = 0;      // the provider has begun with it
    uint32_t completed = 0;  // DONE is set
    uint32_t dequeued = 0;   // handed back by Done, Wait or Notify
    uint32_t mask = 0;
    std::unique_ptr<uintptr_t[]> slots;  // descriptor address; bit 0 set: completed in error
    const void* open_to = nullptr;       // the handle of the VI while it is connected, for the user agent
    CompletionTarget* cq = nullptr;      // the CQ of this queue, or nullptr
    std::atomic<uint32_t> sleepers{0};   // threads or notifications waiting on this queue itself
    ViCore* vi = nullptr;
    bool is_receive = false;
    RegionCache descriptors;  // regions met last: of the descriptors themselves, and of what they point to
    RegionCache buffers;

    bool allocate(uint32_t depth_power_of_two);
    void clear() {
        posted = taken = completed = dequeued = 0;
        clear_regions();
    }
    void clear_regions() {
        descriptors.clear();
        buffers.clear();
    }

    uint32_t depth() const { return mask + 1; }
    bool empty() const { return posted == dequeued; }
    bool full() const { return posted - dequeued > mask; }
    bool has_untaken() const { return taken != posted; }
    bool head_complete() const { return completed != dequeued; }
    void push(VIP_DESCRIPTOR* d) { slots[posted++ & mask] = reinterpret_cast<uintptr_t>(d); }
    VIP_DESCRIPTOR* at(uint32_t position) const {
        return reinterpret_cast<VIP_DESCRIPTOR*>(slots[position & mask] & ~uintptr_t{1});
    }
    VIP_DESCRIPTOR* next_untaken() const { return at(taken); }
    VIP_DESCRIPTOR* oldest_incomplete() const { return at(completed); }

    // Both only when head_complete().
    bool head_in_error() const { return (slots[dequeued & mask] & 1) != 0; }
    VIP_DESCRIPTOR* dequeue(bool* in_error) {
        const uintptr_t slot = slots[dequeued++ & mask];
        *in_error = (slot & 1) != 0;
        return reinterpret_cast<VIP_DESCRIPTOR*>(slot & ~uintptr_t{1});
    }
};

// Why a connection ends, recorded by the thread that notices first; see ViCore::mark_broken.
struct BreakReason {
    VIP_ERROR_CODE code = VIP_ERROR_CONN_LOST;
    VIP_RESOURCE_CODE resource = VIP_RESOURCE_VI;
    VIP_ULONG opcode = 0;
    VIP_DESCRIPTOR* descriptor = nullptr;
    bool report = true;  // false: the error was already told through a descriptor; only the peer-lost kind is
                         // late (spec/compat Q14)
    Cause cause;         // none: that of a descriptor (ViCore::causes), or what the code says
    bool told_by_peer = false;  // the cause is what the other end has found
};

// Calls of the user agent that providers use. All may be called from any thread.
struct ViEvents {
    // Queues an asynchronous error for the NIC's handler thread; changes no state. Any locks may be held.
    void (*async_error)(ViCore&, VIP_ERROR_CODE, VIP_RESOURCE_CODE, VIP_ULONG opcode, VIP_DESCRIPTOR*);
    // Carries out a break that was marked: VI to Error, queues flushed, waiters woken. No VI lock may be
    // held.
    void (*settle)(ViCore&);
    // A thread sleeps on that queue or its CQ: wake it. Any locks may be held.
    void (*wake)(WorkQueue&);
    // A CQ has overflowed: the entry of `queue` was lost. Marks what has to follow. Any locks may be held.
    void (*cq_overflow)(WorkQueue&);
    // The descriptor at the head of that queue is about to complete in error, not flushed. The queue's lock is held.
    void (*failed)(WorkQueue&, const VIP_DESCRIPTOR*, uint32_t status);
};

struct ViCore {
    // Lock order: recv.lock before send.lock before a CompletionRing. State changes hold both queue locks.
    WorkQueue recv;
    WorkQueue send;

    std::atomic<uint32_t> state{VIP_STATE_IDLE};
    ViTraits traits;    // constant while connected
    uint32_t ptag = 0;  // id; 0 is the NULL tag
    uint32_t slot = 0;  // number of this VI within its NIC context, below NicInfo::max_vi
    uint32_t max_segments = 0;
    uint64_t max_transfer = 0;
    uint32_t rdma_read_allowed = 0;  // EnableRdmaRead asked for and supported at this level
    bool strict_receives = false;    // all of a receive must lie in its regions, whatever comes (vipl.strict)
    uint32_t atomic_widths = 0;      // of words, 4 + 8 at most: what the NIC takes at a reliable level
    RegionView* regions = nullptr;
    const ViEvents* events = nullptr;
    Endpoint* endpoint = nullptr;
    void* owner = nullptr;  // the user agent's object

    std::atomic<uint32_t> broken{0};  // 1: reason is being written, 2: marked, waiting to be settled
    BreakReason reason;

    // Notes that the connection must end; the first reason wins. Locks may be held; call
    // events->settle(*this) once none is.
    bool mark_broken(const BreakReason& why) {
        uint32_t whole = 0;
        if (!broken.compare_exchange_strong(whole, 1, std::memory_order_acquire)) return false;
        reason = why;
        broken.store(2, std::memory_order_release);
        return true;
    }
    bool is_marked_broken() const { return broken.load(std::memory_order_acquire) == 2; }

    // Why the next descriptor of a queue fails, where a provider has found more than the descriptor shows; then why it
    // has failed. [0] under send.lock, [1] under recv.lock; slow paths only.
    struct Known {
        Cause cause;
        bool told_by_peer = false;
    };
    Known causes[2];
    Known& cause_of(const WorkQueue& q) { return causes[q.is_receive ? 1 : 0]; }

    ViStats stats;  // last: no hot path reads it
};

// Counts the completion just published in the head's descriptor: CQ entry, then wake-up. The second half of
// complete_head(), for hot paths that have the descriptor at hand and no error.
// `barrier` is light_barrier, or less where the caller needs no fence.
template <class Barrier>
[[gnu::always_inline]] inline void tell_completion(WorkQueue& q, Barrier barrier) {
    q.completed = q.completed + 1;
    const std::atomic<uint32_t>* sleepers = &q.sleepers;
    if (q.cq != nullptr) {
        sleepers = &q.cq->sleepers;
        if (!q.cq->ring.push(&q)) [[unlikely]]
            q.vi->events->cq_overflow(q);
    }
    barrier();  // pairs with the heavy barrier of a thread going to sleep
    if (sleepers->load(std::memory_order_relaxed) != 0) [[unlikely]]
        q.vi->events->wake(q);
}

// Whether a completion just published concerns only the thread that polls the queue itself. `barrier`
// as above: it stands between the status and this look.
template <class Barrier>
[[gnu::always_inline]] inline bool no_thread_waits(const WorkQueue& q, Barrier barrier) {
    barrier();  // pairs with the heavy barrier of a thread going to sleep
    return q.cq == nullptr && q.sleepers.load(std::memory_order_relaxed) == 0;
}

// A descriptor is about to complete in error, for another reason than a flush: counts it, and tells the user agent.
[[gnu::cold]] void note_failure(WorkQueue& q, const VIP_DESCRIPTOR* d, uint32_t status);

// Completes the oldest incomplete descriptor of a queue. Call with the queue's lock held, once per
// descriptor, in order; the descriptor must have been taken. `status` has op, IMMEDIATE and error bits; DONE
// is added. Then CQ entry, then wake-up.
inline void complete_head(WorkQueue& q, uint32_t status, uint32_t length) {
    const uint32_t position = q.completed & q.mask;
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(q.slots[position] & ~uintptr_t{1});
    if ((status & VIP_STATUS_ERROR_MASK) != 0) [[unlikely]] {
        q.slots[position] |= 1;
        if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) == 0) note_failure(q, d, status);
    }
    publish_status(d, status, length);
    tell_completion(q, light_barrier);
}

// What is wrong with a descriptor of the send queue before anything is sent: 0 or VIP_STATUS_*_ERROR bits
// (spec/descriptors 2.3). On success *total is the sum of its data segments. Reads the segments once; callers
// gather from the same memory afterwards and stay within *total.
uint32_t check_send(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t* total);

// The same for a receive descriptor that a message of `bytes` is about to use; *capacity is what its segments hold.
// Programs post receives that are longer than their memory, and their peers send what fits: what counts is where the
// bytes of the message go, unless ViCore::strict_receives.
uint32_t check_receive(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t bytes, uint64_t* capacity);
// The same for a message of any length that the descriptor holds.
uint32_t check_receive(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t* capacity);

// Completes everything left in a queue as flushed, in posting order, with the op bits it deserves
// (spec/states 3 flush rules). Lock held.
void flush_queue(WorkQueue& q);

}  // namespace viaduct
