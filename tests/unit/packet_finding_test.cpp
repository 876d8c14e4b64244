// SPDX-License-Identifier: BSD-2-Clause
// Causes as findings of the wire and back: the kinds and numbers that are carried, and the words without other numbers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "providers/packet/finding.hpp"
#include "vipl/why.hpp"

namespace viaduct::packet {
namespace {

// As the other end of the wire gets it.
Cause sent(const Cause& cause) {
    std::vector<std::byte> fields(wire::kEndingBytes + wire::kFindingBytes);
    wire::write_finding(fields.data() + wire::kEndingBytes, finding_of(cause));
    wire::Frame frame;
    frame.header.kind = wire::Kind::disconnect;
    frame.header.length = static_cast<uint16_t>(fields.size());
    frame.fields = fields.data();
    return cause_of(wire::read_finding(frame));
}

std::string text_of(const Cause& cause) {
    char text[256];
    vipl::write_cause(cause, text, sizeof text);
    return text;
}

Cause of_range(CauseKind kind, CauseOperation operation) {
    Cause c;
    c.kind = kind;
    c.operation = operation;
    c.handle = 0x70001;
    c.address = 0xABCD1000;
    c.length = 64;
    c.low = 0xABCD0000;
    c.high = 0xABCD0800;
    return c;
}

// Why memory is not open to the peer.
bool is_closed(CauseKind kind) {
    return kind == CauseKind::unknown_handle || kind == CauseKind::other_ptag || kind == CauseKind::memory_not_enabled;
}

TEST(PacketFinding, AKindComesBackAsItselfOrIsNotCarried) {
    for (int kind = 1; kind < static_cast<int>(CauseKind::count_); ++kind) {
        SCOPED_TRACE(kind);
        const Cause cause = sent(of_range(static_cast<CauseKind>(kind), CauseOperation::rdma_write));
        const bool seen_by_peer = static_cast<CauseKind>(kind) >= CauseKind::disconnected &&
                                  static_cast<CauseKind>(kind) <= CauseKind::damaged;
        if (seen_by_peer) {
            EXPECT_FALSE(cause);
            continue;
        }
        EXPECT_EQ(static_cast<int>(cause.kind),
                  static_cast<int>(is_closed(static_cast<CauseKind>(kind)) ? CauseKind::not_open
                                                                           : static_cast<CauseKind>(kind)));
        EXPECT_EQ(cause.operation, CauseOperation::rdma_write);
        EXPECT_EQ(cause.low, Cause::kNotSent);
        EXPECT_EQ(cause.high, Cause::kNotSent);
        EXPECT_EQ(text_of(cause).find("18446744073709551615"), std::string::npos) << text_of(cause);
        EXPECT_EQ(text_of(cause).find("0xffffffffffffffff"), std::string::npos) << text_of(cause);
        EXPECT_NE(text_of(cause), "RDMA write: not known");
    }
    EXPECT_FALSE(sent(Cause{}));
}

TEST(PacketFinding, OfATargetThePeersOwnRangeIsSentAndNoOtherNumber) {
    const Cause cause = sent(of_range(CauseKind::outside_region, CauseOperation::rdma_write));
    EXPECT_EQ(cause.handle, 0x70001u);
    EXPECT_EQ(cause.address, 0xABCD1000u);
    EXPECT_EQ(cause.length, 64u);
    EXPECT_EQ(text_of(cause), "RDMA write: address 0xabcd1000 length 64 is outside memory handle 0x70001");
}

TEST(PacketFinding, WhyMemoryIsNotOpenToThePeerIsNotSent) {
    for (const CauseKind kind : {CauseKind::unknown_handle, CauseKind::other_ptag, CauseKind::memory_not_enabled}) {
        EXPECT_EQ(text_of(sent(of_range(kind, CauseOperation::rdma_read))),
                  "RDMA read: address 0xabcd1000 length 64: memory handle 0x70001 is not registered, has another "
                  "protection tag than the VI, or was registered without EnableRdmaRead");
        Cause of_segment = of_range(kind, CauseOperation::rdma_read);
        of_segment.segment = 1;
        EXPECT_NE(sent(of_segment).kind, CauseKind::not_open) << "a segment here is none that the peer chooses";
    }
}

// A peer may try every handle and every address.
TEST(PacketFinding, EndsOfARegionThatIsNotOpenAreNotFoundByTrying) {
    constexpr uint64_t kBase = 0x1000000, kLength = 4096;
    constexpr uint32_t kTag = 7, kOtherTag = 8;
    RegionTable table;
    ASSERT_TRUE(table.valid());
    Region region;
    region.base = kBase;
    region.length = kLength;
    region.ptag = kTag;
    region.flags = kRegionRdmaWrite;
    const uint32_t handle = table.add(region);
    const auto kind = [&](uint32_t of, uint64_t address, uint32_t tag, RegionFlag flag) {
        Cause cause = explain_range(table, of, address, 64, tag, flag);
        cause.operation = CauseOperation::rdma_write;
        return sent(cause).kind;
    };
    for (const uint64_t address : {uint64_t{0}, kBase - 64, kBase, kBase + kLength}) {
        EXPECT_EQ(kind(handle, address, kOtherTag, kRegionRdmaWrite), CauseKind::not_open) << address;
        EXPECT_EQ(kind(handle, address, kTag, kRegionRdmaRead), CauseKind::not_open) << address;
        EXPECT_EQ(kind(handle + 1, address, kTag, kRegionRdmaWrite), CauseKind::not_open) << address;
    }
    EXPECT_EQ(kind(handle, kBase + kLength, kTag, kRegionRdmaWrite), CauseKind::outside_region);
}

TEST(PacketFinding, OfASegmentHereNoNumberIsSent) {
    for (const CauseOperation operation : {CauseOperation::receive, CauseOperation::rdma_write}) {
        Cause here = of_range(CauseKind::outside_region, operation);
        here.segment = 1;
        const Cause cause = sent(here);
        EXPECT_EQ(cause.kind, CauseKind::outside_region);
        EXPECT_EQ(cause.handle, 0u);
        EXPECT_EQ(cause.address, Cause::kNotSent);
        EXPECT_EQ(cause.length, Cause::kNotSent);
    }
    EXPECT_EQ(text_of(sent(of_range(CauseKind::other_ptag, CauseOperation::receive))),
              "receive: a memory handle has another protection tag than the VI");
}

TEST(PacketFinding, OfAReceiveTheLengthOfTheMessageIsSent) {
    Cause here;
    here.kind = CauseKind::receive_too_small;
    here.operation = CauseOperation::receive;
    here.length = 512;
    here.high = 32;
    EXPECT_EQ(text_of(sent(here)), "receive: a message of 512 bytes met a shorter receive");
    here.kind = CauseKind::no_receive;
    here.operation = CauseOperation::none;
    EXPECT_EQ(text_of(sent(here)), "a message of 512 bytes met no posted receive");
}

}  // namespace
}  // namespace viaduct::packet
