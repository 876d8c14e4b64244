// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/finding.hpp"

#include "providers/wire/bytes.hpp"

namespace viaduct::wire {

namespace {

constexpr uint8_t kOfTarget = 1;

// The finding with only the numbers that it may have.
Finding bounded(Finding f) {
    const bool has_range = f.code == FindingCode::outside_region || f.code == FindingCode::not_open ||
                           f.code == FindingCode::vi_not_enabled;
    const bool has_length = f.code == FindingCode::no_receive || f.code == FindingCode::receive_too_small;
    const bool on_memory = f.operation == FindingOperation::write || f.operation == FindingOperation::read ||
                           f.operation == FindingOperation::atomic;
    f.of_target = f.of_target && has_range && on_memory;
    if (!f.of_target) {
        f.handle = 0;
        f.address = 0;
    }
    if (!f.of_target && !has_length) f.length = 0;
    return f;
}

}  // namespace

void write_finding(std::byte* to, const Finding& finding) {
    const Finding f = bounded(finding);
    store16(to, static_cast<uint16_t>(f.code));
    store8(to + 2, static_cast<uint8_t>(f.operation));
    store8(to + 3, f.of_target ? kOfTarget : 0);
    store32(to + 4, f.handle);
    store64(to + 8, f.address);
    store64(to + 16, f.length);
}

Finding read_finding(const Frame& frame) {
    if (frame.header.kind != Kind::disconnect || frame.header.length < kEndingBytes + kFindingBytes) return {};
    const std::byte* p = frame.fields + kEndingBytes;
    const uint16_t code = load16(p);
    const uint8_t operation = load8(p + 2);
    Finding f;
    f.length = load64(p + 16);
    if (code >= static_cast<uint16_t>(FindingCode::count_) ||
        operation >= static_cast<uint8_t>(FindingOperation::count_) || f.length > UINT32_MAX)
        return {};
    f.code = static_cast<FindingCode>(code);
    f.operation = static_cast<FindingOperation>(operation);
    f.of_target = (load8(p + 3) & kOfTarget) != 0;
    f.handle = load32(p + 4);
    f.address = load64(p + 8);
    f = bounded(f);
    const bool needs_target = f.code == FindingCode::not_open || f.code == FindingCode::vi_not_enabled;
    return f.code != FindingCode::none && (f.of_target || !needs_target) ? f : Finding{};
}

}  // namespace viaduct::wire
