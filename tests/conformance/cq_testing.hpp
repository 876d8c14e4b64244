// SPDX-License-Identifier: BSD-2-Clause
// For tests of completion queues: entries taken by polling, ends with one queue.
#pragma once

#include "fixture.hpp"

namespace viaduct::conformance {

/// The answer of VipCQDone.
struct CqEntry {
    VIP_RETURN code = VIP_NOT_DONE;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = 77;
};

inline CqEntry take_entry(VIP_CQ_HANDLE cq, Millis limit = kTimeout) {
    CqEntry entry;
    eventually(
        [&] {
            entry.code = VipCQDone(cq, &entry.vi, &entry.recv);
            return entry.code != VIP_NOT_DONE;
        },
        limit);
    return entry;
}

inline EndOptions with_one_cq(VIP_ULONG entries) {
    EndOptions chosen;
    chosen.send_cq = entries;
    chosen.one_cq = true;
    return chosen;
}

/// Puts a completion on the queue now, without a wire: a posted receive that is flushed.
inline VIP_DESCRIPTOR* flush_one(End& end, VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d = end.message(end.buffer(8), 8);
    require(VipPostRecv(vi, d, end.region), "VipPostRecv");
    require(VipDisconnect(vi), "VipDisconnect");
    return d;
}

}  // namespace viaduct::conformance
