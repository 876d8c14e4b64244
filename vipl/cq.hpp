// SPDX-License-Identifier: BSD-2-Clause
// A completion queue: the ring that completions are pushed to, and the group that is polled for them.
#pragma once

#include <vipl.h>

#include <atomic>
#include <deque>

#include "core/vi/vi_core.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

struct ArmedCq {
    VIP_PVOID context = nullptr;
    VIP_CQ_CALLBACK handler = nullptr;
};

struct Cq {
    CompletionTarget target;
    PollGroup poll;  // its lock holds off VipDestroyCQ; outermost of all hot locks
    std::atomic<uintptr_t> handle{0};
    const DataOps* ops = nullptr;
    Nic* nic = nullptr;
    uint32_t empty_polls = 0;   // under poll.lock
    uint32_t told_timeout_at = 0;  // number of the entry, and 1, whose timeout was reported; under poll.lock
    std::atomic<uint32_t> queues{0};  // work queues of VIs that use it; changed under Nic::mutex
    std::deque<ArmedCq> armed;  // under the dispatcher's lock

    bool is(const void* wanted) const {
        return handle.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(wanted);
    }
    VIP_CQ_HANDLE public_handle() const { return reinterpret_cast<VIP_CQ_HANDLE>(handle.load()); }
};

inline Cq* find_cq(VIP_CQ_HANDLE handle) {
    return static_cast<Cq*>(handle_table.find(handle, HandleKind::cq));
}

VIP_RETURN create_cq(Nic& nic, VIP_ULONG entries, VIP_CQ_HANDLE* out);
VIP_RETURN destroy_cq(Cq& cq, VIP_CQ_HANDLE handle);
VIP_RETURN resize_cq(Cq& cq, VIP_CQ_HANDLE handle, VIP_ULONG entries);

// For VipCloseNic.
void kill_cq(Cq& cq);
void release_cq(Cq& cq);

// Takes one entry; polls once when there is none (VipCQDone).
VIP_RETURN cq_take(Cq& cq, VIP_CQ_HANDLE handle, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue);

}  // namespace viaduct::vipl
