// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that fail and connections that break: the record, with what this end has seen and what the other one has
// said.
#include <cstdio>
#include <cstring>

#include "core/stats/failures.hpp"
#include "core/sync/cancellation.hpp"
#include "core/text/code_names.hpp"
#include "vipl/cq.hpp"
#include "vipl/nic.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

using stats::Failure;
using stats::FailureKind;

namespace {

constexpr size_t kTextBytes = sizeof(stats::FailureRecord::text);
constexpr size_t kWhatBytes = kTextBytes - 96;  // of it, so that the words around it have room

// What the status says when nothing else is known.
const char* meaning_of(uint32_t status) {
    if ((status & VIP_STATUS_RDMA_PROT_ERROR) != 0) return "the target does not permit the RDMA operation";
    if ((status & VIP_STATUS_REMOTE_DESC_ERROR) != 0)
        return "the receive at the other end has an error: it is too short, or its memory is not registered";
    if ((status & VIP_STATUS_TRANSPORT_ERROR) != 0) return "the network or the peer was lost";
    if ((status & VIP_STATUS_PARTIAL_ERROR) != 0) return "the message broke off";
    if ((status & VIP_STATUS_LENGTH_ERROR) != 0) return "the lengths do not fit";
    if ((status & VIP_STATUS_PROTECTION_ERROR) != 0) return "its memory may not be used, or is not mapped any more";
    return "the descriptor is not well formed";
}

const char* cure_of_status(uint32_t status) {
    if ((status & (VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_REMOTE_DESC_ERROR)) != 0)
        return "vipstat on the host of the peer shows what it has found";
    if ((status & VIP_STATUS_TRANSPORT_ERROR) != 0)
        return "vipinfo --links and vipping show whether the peer is reached";
    return "keep descriptor and memory unchanged until the descriptor is handed back";
}

// What was requested of the peer: its memory, as the descriptor names it.
void write_target(const VIP_DESCRIPTOR* d, char* text, size_t bytes) {
    const VIP_ADDRESS_SEGMENT& remote = segments_of(d)->Remote;
    std::snprintf(text, bytes, "; target: %#llx, handle %#x",
                  static_cast<unsigned long long>(remote.Data.AddressBits), remote.Handle);
}

const char* call_of(const WorkQueue& q) { return q.is_receive ? "VipPostRecv" : "VipPostSend"; }

// What an error code says of a VI when no cause is known.
const char* meaning_of(VIP_ERROR_CODE code) { return name_of_error(static_cast<uint32_t>(code)).meaning; }

const char* cure_of_error(VIP_ERROR_CODE code) {
    switch (code) {
        case VIP_ERROR_RECVQ_EMPTY:
            return "post receives before the peer sends: before the connection is made, and one more for each taken";
        case VIP_ERROR_RDMAW_PROT:
        case VIP_ERROR_RDMAR_PROT:
            return "enable RDMA in the attributes of the memory and of this VI, give both one protection tag, and tell "
                   "the peer the right address and handle";
        case VIP_ERROR_CONN_LOST:
            return "look at the peer: its log, vipstat there, vipping to its host";
        case VIP_ERROR_CATASTROPHIC:
            return "close the NIC and open it again";
        default:
            return "VipDisconnect, then connect again";
    }
}

}  // namespace

void on_descriptor_failed(WorkQueue& q, const VIP_DESCRIPTOR* d, uint32_t status) {
    const CancellationHeldOff inside_hot_calls;
    Vi& vi = Vi::of(*q.vi);
    ViCore::Known& known = q.vi->cause_of(q);
    if (!known.cause) known.cause = q.is_receive ? explain_receive(*q.vi, d) : explain_send(*q.vi, d);
    char what[kWhatBytes];
    char said[sizeof(stats::FailureRecord::said)] = "";
    char text[kTextBytes];
    char peer[64];
    if (known.cause && !known.told_by_peer) {
        write_cause(known.cause, what, sizeof what);
    } else {
        std::snprintf(what, sizeof what, "%s", meaning_of(status));
        if (known.cause) write_cause(known.cause, said, sizeof said);
    }
    char target[48] = "";
    const CauseOperation operation = operation_of_send(d);
    const bool remote = (status & (VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_REMOTE_DESC_ERROR)) != 0;
    if (!q.is_receive && operation != CauseOperation::send && remote && !known.cause)
        write_target(d, target, sizeof target);
    std::snprintf(text, sizeof text, "descriptor %u of the %s: %s%s", q.completed,
                  q.is_receive ? "receive queue" : "send queue", what, target);
    ViStats::copy_text(q.vi->stats.peer, peer);
    Failure failure;
    failure.kind = FailureKind::descriptor;
    failure.call = call_of(q);
    failure.object = vi.public_handle();
    failure.code = status;
    failure.peer = peer;
    failure.text = text;
    failure.said = said;
    failure.cure = known.cause ? cure_of(known.cause) : cure_of_status(status);
    stats::record_failure(failure);
    // Where the connection stays, the next descriptor has a cause of its own.
    if (q.vi->traits.reliability == VIP_SERVICE_UNRELIABLE) known = {};
}

void note_broken(Vi& vi, const BreakReason& why, bool stays) {
    // The reason as given, else what a descriptor has failed of.
    ViCore::Known known{why.cause, why.told_by_peer};
    bool of_descriptor = false;
    for (const ViCore::Known& one : vi.core.causes) {
        if (stays || known.cause || !one.cause) continue;
        known = one;
        of_descriptor = true;
    }
    char text[kTextBytes];
    char what[kWhatBytes];
    char said[sizeof(stats::FailureRecord::said)] = "";
    char peer[64];
    if (known.cause && !known.told_by_peer) {
        write_cause(known.cause, what, sizeof what);
    } else {
        std::snprintf(what, sizeof what, "%s", meaning_of(why.code));
        if (known.cause) write_cause(known.cause, said, sizeof said);
    }
    std::snprintf(text, sizeof text, "%s%s%s", stays ? "the connection stays: " : "the connection is broken: ",
                  of_descriptor && !known.told_by_peer ? "a descriptor failed: " : "", what);
    ViStats::copy_text(vi.core.stats.peer, peer);
    Failure failure;
    failure.kind = FailureKind::connection;
    failure.call = "VI";
    failure.object = vi.public_handle();
    failure.code = why.code;
    failure.peer = peer;
    failure.text = text;
    failure.said = said;
    failure.cure = known.cause ? cure_of(known.cause) : cure_of_error(why.code);
    stats::record_failure(failure);
}

}  // namespace viaduct::vipl
