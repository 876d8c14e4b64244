// SPDX-License-Identifier: BSD-2-Clause
// The finding of a disconnect: it reaches the peer's host and has no number of this end. A finding that no peer sends
// is dropped.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/wire/forged_peer.hpp"

namespace viaduct::wire {
namespace {

using test::body;
using test::body_of;
using test::Bytes;
using test::LoneNode;

constexpr Finding kRange{FindingCode::outside_region, FindingOperation::write, true, 7, 0x123456789A, 64};

const Frame* disconnect_of(const LoneNode& n) {
    const auto found = std::find_if(n.sent.begin(), n.sent.end(),
                                    [](const LoneNode::Sent& s) { return s.frame.header.kind == Kind::disconnect; });
    return found != n.sent.end() ? &found->frame : nullptr;
}

Bytes ending_with(const Finding& finding, Reason reason = Reason::broken) {
    Bytes fields = body(write_ending, kEndingBytes, Ending{reason, 0}, kFindingBytes);
    write_finding(fields.data() + kEndingBytes, finding);
    return fields;
}

// The finding that the host gets by a disconnect with these fields.
Finding finding_by(const Bytes& fields) {
    LoneNode n;
    n.connect();
    n.put(n.next(Kind::disconnect), fields);
    EXPECT_TRUE(n.how_ended.has_value()) << "whatever the finding is";
    return n.found_by_peer;
}

TEST(WireFinding, ARefusalCarriesTheFindingOfTheHost) {
    LoneNode n;
    n.connect();
    n.answer_to_messages = HostResult::bad_receive;
    n.found = {FindingCode::receive_too_small, FindingOperation::receive, false, 0, 0, 512};
    n.put_next(Kind::send, body_of(Message{0, 0, 512, 0}, 512));
    ASSERT_EQ(n.how_ended, Ended::refused_here);
    const Frame* const frame = disconnect_of(n);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(read_ending(*frame).reason, Reason::bad_receive);
    const Finding f = read_finding(*frame);
    EXPECT_EQ(f.code, FindingCode::receive_too_small);
    EXPECT_EQ(f.operation, FindingOperation::receive);
    EXPECT_EQ(f.length, 512u);
}

TEST(WireFinding, ADisconnectWithoutAFindingHasTheEndingAlone) {
    LoneNode n;
    n.connect();
    n.node.disconnect(n.link, n.now);
    const Frame* const frame = disconnect_of(n);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->header.length, kEndingBytes);
    EXPECT_FALSE(read_finding(*frame));
}

TEST(WireFinding, NumbersOfThisEndAreNotSent) {
    Finding f = kRange;
    f.operation = FindingOperation::receive;  // a segment of a receive here, and no target of the peer
    std::byte bytes[kFindingBytes];
    write_finding(bytes, f);
    EXPECT_EQ(load16(bytes), static_cast<uint16_t>(FindingCode::outside_region));
    EXPECT_EQ(load8(bytes + 3), 0);
    EXPECT_EQ(load32(bytes + 4), 0u);
    EXPECT_EQ(load64(bytes + 8), 0u);
    EXPECT_EQ(load64(bytes + 16), 0u);
    f = kRange;
    f.code = FindingCode::transfer_size;
    write_finding(bytes, f);
    EXPECT_EQ(load64(bytes + 8), 0u);
    EXPECT_EQ(load64(bytes + 16), 0u);
}

TEST(WireFinding, ThePeersFindingReachesTheHost) {
    const Finding f = finding_by(ending_with(kRange));
    EXPECT_EQ(f.code, kRange.code);
    EXPECT_EQ(f.operation, kRange.operation);
    EXPECT_TRUE(f.of_target);
    EXPECT_EQ(f.handle, kRange.handle);
    EXPECT_EQ(f.address, kRange.address);
    EXPECT_EQ(f.length, kRange.length);
}

TEST(WireFinding, AFindingThatNoPeerSendsIsDropped) {
    const auto changed = [](auto change) {
        Bytes fields = ending_with(kRange);
        change(fields.data() + kEndingBytes);
        return fields;
    };
    EXPECT_FALSE(finding_by(changed([](std::byte* at) { store16(at, 0); }))) << "code 0";
    EXPECT_FALSE(finding_by(changed([](std::byte* at) { store16(at, static_cast<uint16_t>(FindingCode::count_)); })));
    EXPECT_FALSE(finding_by(changed([](std::byte* at) { store16(at, 0xFFFF); })));
    EXPECT_FALSE(finding_by(changed([](std::byte* at) { store8(at + 2, 6); }))) << "operation";
    EXPECT_FALSE(finding_by(changed([](std::byte* at) { store64(at + 16, uint64_t{1} << 32); }))) << "length";
    for (const FindingCode code : {FindingCode::not_open, FindingCode::vi_not_enabled}) {
        const auto without_target = [code](std::byte* at) {
            store16(at, static_cast<uint16_t>(code));
            store8(at + 3, 0);
        };
        EXPECT_FALSE(finding_by(changed(without_target))) << static_cast<int>(code);
    }
    Bytes cut = ending_with(kRange);
    cut.pop_back();
    EXPECT_FALSE(finding_by(cut));
    const Finding f = finding_by(changed([](std::byte* at) { store8(at + 3, 0); }));
    EXPECT_EQ(f.code, kRange.code);
    EXPECT_EQ(f.address, 0u) << "numbers that the code does not have are zeros";
}

}  // namespace
}  // namespace viaduct::wire
