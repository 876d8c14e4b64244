// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/finding.hpp"

#include <algorithm>
#include <iterator>

namespace viaduct::packet {

using wire::Finding;
using wire::FindingCode;
using wire::FindingOperation;

namespace {

struct Row {
    CauseKind kind;
    FindingCode code;
};
constexpr Row kRows[] = {
    {CauseKind::no_receive, FindingCode::no_receive},
    {CauseKind::receive_too_small, FindingCode::receive_too_small},
    {CauseKind::unknown_handle, FindingCode::unknown_handle},
    {CauseKind::outside_region, FindingCode::outside_region},
    {CauseKind::other_ptag, FindingCode::other_ptag},
    {CauseKind::not_open, FindingCode::not_open},
    {CauseKind::vi_not_enabled, FindingCode::vi_not_enabled},
    {CauseKind::control, FindingCode::control},
    {CauseKind::segment_count, FindingCode::segment_count},
    {CauseKind::no_address_segment, FindingCode::no_address_segment},
    {CauseKind::no_rdma_read, FindingCode::no_rdma_read},
    {CauseKind::read_with_immediate, FindingCode::read_with_immediate},
    {CauseKind::descriptor_past_region, FindingCode::descriptor_past_region},
    {CauseKind::length_sum, FindingCode::length_sum},
    {CauseKind::transfer_size, FindingCode::transfer_size},
    {CauseKind::no_atomics, FindingCode::no_atomics},
    {CauseKind::atomic_segments, FindingCode::atomic_segments},
    {CauseKind::atomic_width, FindingCode::atomic_width},
    {CauseKind::atomic_alignment, FindingCode::atomic_alignment},
    {CauseKind::changed_or_unmapped, FindingCode::changed_or_unmapped},
    {CauseKind::queue_full, FindingCode::queue_full},
    {CauseKind::misaligned, FindingCode::misaligned},
    {CauseKind::not_registered, FindingCode::not_registered},
    {CauseKind::cq_full, FindingCode::cq_full},
    {CauseKind::device, FindingCode::device},
};

constexpr struct {
    CauseOperation here;
    FindingOperation there;
} kOperations[] = {
    {CauseOperation::send, FindingOperation::send},
    {CauseOperation::receive, FindingOperation::receive},
    {CauseOperation::rdma_write, FindingOperation::write},
    {CauseOperation::rdma_read, FindingOperation::read},
    {CauseOperation::atomic, FindingOperation::atomic},
};

// A range with a segment is one of a descriptor here. One without is the target of the peer's operation.
bool is_of_target(const Cause& cause) {
    return cause.segment == 0 &&
           (cause.operation == CauseOperation::rdma_write || cause.operation == CauseOperation::rdma_read ||
            cause.operation == CauseOperation::atomic);
}

// The kind that the peer gets.
CauseKind sent_kind(const Cause& cause) {
    const bool closed = cause.kind == CauseKind::unknown_handle || cause.kind == CauseKind::other_ptag ||
                        cause.kind == CauseKind::memory_not_enabled;
    return closed && is_of_target(cause) ? CauseKind::not_open : cause.kind;
}

}  // namespace

Finding finding_of(const Cause& cause) {
    const CauseKind kind = sent_kind(cause);
    const Row* const row =
        std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.kind == kind; });
    if (row == std::end(kRows)) return {};
    Finding f;
    f.code = row->code;
    for (const auto& operation : kOperations)
        if (operation.here == cause.operation) f.operation = operation.there;
    f.of_target = is_of_target(cause);
    f.handle = cause.handle;
    f.address = cause.address;
    f.length = std::min<uint64_t>(cause.length, UINT32_MAX);
    return f;
}

Cause cause_of(const Finding& f) {
    const Row* const row =
        std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.code == f.code; });
    if (row == std::end(kRows)) return {};
    Cause cause;
    cause.kind = row->kind;
    for (const auto& operation : kOperations)
        if (operation.there == f.operation) cause.operation = operation.here;
    const bool has_length = f.code == FindingCode::no_receive || f.code == FindingCode::receive_too_small;
    cause.handle = f.handle;
    cause.address = f.of_target ? f.address : Cause::kNotSent;
    cause.length = f.of_target || has_length ? f.length : Cause::kNotSent;
    cause.low = cause.high = Cause::kNotSent;
    return cause;
}

}  // namespace viaduct::packet
