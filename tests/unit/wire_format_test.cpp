// SPDX-License-Identifier: BSD-2-Clause
// The frame format, byte by byte: docs/wire-format.md is checked here.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "providers/wire/bytes.hpp"
#include "providers/wire/crc32c.hpp"
#include "providers/wire/crc32c_folded.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/format.hpp"
#include "tests/wire/simulated_wire.hpp"

namespace viaduct::wire {
namespace {

std::vector<std::byte> sealed(Kind kind, uint32_t payload) {
    std::vector<std::byte> frame(kHeaderBytes + field_bytes(kind) + payload, std::byte{0x5A});
    Header h;
    h.kind = kind;
    h.flags = kFlagLast;
    h.destination = 0x01020304;
    h.source = 0x05060708;
    h.sequence = 0x090A0B0C;
    h.acknowledge = 0x0D0E0F10;
    h.credit = 0x11121314;
    h.pass = 0x15161718191A1B1C;
    h.length = static_cast<uint16_t>(frame.size() - kHeaderBytes);
    seal(frame.data(), h);
    return frame;
}

const std::vector<Kind> kKinds = {
    Kind::request,    Kind::peer_request,   Kind::accept,     Kind::confirm,      Kind::reject,
    Kind::no_match,   Kind::pending,        Kind::withdraw,   Kind::prove,        Kind::disconnect,
    Kind::disconnected, Kind::reset,
    Kind::keep_alive, Kind::acknowledge,    Kind::send,       Kind::write,        Kind::read_request,
    Kind::read_data,  Kind::atomic_request, Kind::atomic_data};

TEST(WireCrc, KnownAnswers) {
    EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
    const std::vector<unsigned char> zeros(32, 0), ones(32, 0xFF);
    EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAu);
    EXPECT_EQ(crc32c(ones.data(), 32), 0x62A8AB43u);
    EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

TEST(WireCrc, TheInstructionAndTheTableAgreeAtEveryLengthAndAlignment) {
    std::mt19937 random(7);
    std::vector<unsigned char> data(9100);
    for (auto& byte : data) byte = static_cast<unsigned char>(random());
    for (size_t n = 0; n < 1100; ++n)
        EXPECT_EQ(crc32c(data.data() + n % 9, n), crc32c_by_table(data.data() + n % 9, n)) << n;
    for (const size_t n : {2015u, 2016u, 4096u, 9000u})
        EXPECT_EQ(crc32c(data.data() + 3, n, 99), crc32c_by_table(data.data() + 3, n, 99)) << n;
}

TEST(WireCrc, PartsJoin) {
    const char* text = "virtual interface";
    EXPECT_EQ(crc32c(text + 7, 10, crc32c(text, 7)), crc32c(text, 17));
}

TEST(WireCrc, WordsInFrontCountAsTheirBytes) {
    std::mt19937_64 random(5);
    std::vector<unsigned char> data(5000);
    for (auto& byte : data) byte = static_cast<unsigned char>(random());
    for (size_t n = 40; n < data.size(); n += n < 200 ? 1 : 97) {
        uint64_t words[5];
        std::memcpy(words, data.data(), sizeof words);
        EXPECT_EQ(crc32c(words, data.data() + 40, n - 40), crc32c_by_table(data.data(), n)) << n;
    }
}

// crc32c() takes the fastest way that this processor has; here the folding one by itself, with lengths that
// end its loops everywhere.
TEST(WireCrc, FoldingAndTheTableAgree) {
    if (!can_fold_crc32c()) GTEST_SKIP() << "this processor has no AVX-512 with VPCLMULQDQ";
    std::mt19937 random(11);
    std::vector<unsigned char> data(9100);
    for (auto& byte : data) byte = static_cast<unsigned char>(random());
    for (size_t n = kFoldedFrom; n <= 9000; n += n < 1100 ? 1 : 61) {
        const unsigned char* at = data.data() + n % 67;
        const auto start = static_cast<uint32_t>(random());
        size_t taken = 0;
        const uint32_t folded = crc32c_folded(at, n, start, &taken);
        EXPECT_EQ(taken, n / 64 * 64);
        EXPECT_EQ(~folded, crc32c_by_table(at, taken, ~start)) << n;
    }
}

TEST(WireFormat, TheHeaderIsBigEndianAtItsPlaces) {
    const auto frame = sealed(Kind::disconnected, 0);
    ASSERT_EQ(frame.size(), 40u);
    const unsigned char expected[36] = {2,  17, 0,  2,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                        15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 0,  0,  0,  0};
    EXPECT_EQ(std::memcmp(frame.data(), expected, sizeof expected), 0);
    EXPECT_EQ(load32(frame.data() + 36),
              crc32c_by_table(frame.data() + 36 + 4, 0, crc32c_by_table("\0\0\0\0", 4, crc32c_by_table(expected, 36))));
}

TEST(WireFormat, EveryKindIsReadAsItWasWritten) {
    for (const Kind kind : kKinds) {
        SCOPED_TRACE(name_of(kind));
        auto frame = sealed(kind, is_sequenced(kind) ? 100 : 0);
        frame.resize(frame.size() + 13);  // Ethernet pads short frames
        Frame f;
        ASSERT_EQ(read_frame(frame, &f), Flaw::none);
        EXPECT_EQ(f.header.kind, kind);
        EXPECT_EQ(f.header.destination, 0x01020304u);
        EXPECT_EQ(f.header.source, 0x05060708u);
        EXPECT_EQ(f.header.sequence, 0x090A0B0Cu);
        EXPECT_EQ(f.header.acknowledge, 0x0D0E0F10u);
        EXPECT_EQ(f.header.credit, 0x11121314u);
        EXPECT_EQ(f.header.pass, 0x15161718191A1B1Cu);
        EXPECT_EQ(payload_bytes(f), is_sequenced(kind) ? 100u : 0u);
        EXPECT_EQ(f.bytes + 13, frame.size());
    }
}

TEST(WireFormat, PayloadThatLiesElsewhereIsSealedAsIfItWereInTheFrame) {
    for (const uint32_t payload : {1u, 100u, 3000u}) {
        const auto whole = sealed(Kind::send, payload);
        for (const uint32_t first : {0u, 1u, payload / 2, payload}) {
            auto front = whole;
            const size_t at = whole.size() - payload;
            std::fill(front.begin() + static_cast<ptrdiff_t>(at), front.end(), std::byte{0xEE});
            const Piece tail[] = {{whole.data() + at, first}, {whole.data() + at + first, payload - first}};
            Frame f;
            ASSERT_EQ(read_frame(whole, &f), Flaw::none);
            seal(front.data(), f.header, tail);
            EXPECT_EQ(load32(front.data() + 36), load32(whole.data() + 36)) << payload << " " << first;
        }
    }
}

TEST(WireFormat, EverySingleDamagedBitIsSeen) {
    auto frame = sealed(Kind::write, 40);
    for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
        frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        Frame f;
        EXPECT_NE(read_frame(frame, &f), Flaw::none) << bit;
        frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
}

TEST(WireFormat, WhatIsTooShortForItsKindIsNoFrame) {
    for (const Kind kind : kKinds) {
        const auto frame = sealed(kind, 0);
        Frame f;
        for (size_t n = 0; n < frame.size(); ++n)
            EXPECT_NE(read_frame({frame.data(), n}, &f), Flaw::none) << name_of(kind) << " " << n;
        if (field_bytes(kind) == 0) continue;
        auto small = frame;
        Header h;
        h.kind = kind;
        h.length = static_cast<uint16_t>(field_bytes(kind) - 1);
        seal(small.data(), h);
        EXPECT_EQ(read_frame(small, &f), Flaw::length);
    }
}

TEST(WireFormat, AnotherVersionOrAnUnknownKindIsToldApart) {
    auto frame = sealed(Kind::reset, 0);
    Frame f;
    frame[0] = std::byte{1};
    EXPECT_EQ(read_frame(frame, &f), Flaw::version);
    frame[0] = std::byte{2};
    frame[1] = std::byte{99};
    EXPECT_EQ(read_frame(frame, &f), Flaw::kind);
}

TEST(WireFormat, FieldsOfEachKindComeBack) {
    std::byte room[kConnectBytes];
    Frame f;
    f.fields = room;

    Connect c;
    c.nonce = 0x1122334455667788;
    c.sequence = 9;
    c.max_frame = 9000;
    c.arrived = 1460;
    c.traits.reliability = 4;
    c.traits.rdma_read = 1;
    c.traits.max_transfer = uint64_t{1} << 40;
    c.traits.qos = 3;
    c.window = 64;
    c.local = test::end_address(7, "left");
    c.remote = test::end_address(8, "the right one");
    c.pass = 0xFEDCBA9876543210;
    write_connect(room, c);
    Connect c2;
    ASSERT_EQ(read_connect(f, &c2), Flaw::none);
    EXPECT_EQ(c2.nonce, c.nonce);
    EXPECT_EQ(c2.sequence, 9u);
    EXPECT_EQ(c2.max_frame, 9000);
    EXPECT_EQ(c2.arrived, 1460);
    EXPECT_EQ(c2.traits.reliability, 4);
    EXPECT_EQ(c2.traits.rdma_write, 0);
    EXPECT_EQ(c2.traits.rdma_read, 1);
    EXPECT_EQ(c2.traits.max_transfer, c.traits.max_transfer);
    EXPECT_EQ(c2.traits.qos, 3u);
    EXPECT_EQ(c2.local, c.local);
    EXPECT_EQ(c2.remote, c.remote);
    EXPECT_EQ(c2.pass, c.pass);
    store16(room + 46, kMaxDiscriminator + 1);
    EXPECT_EQ(read_connect(f, &c2), Flaw::length) << "a discriminator longer than any";

    write_message(room, {1, 2, 3, 4});
    write_target(room + kMessageBytes, {5, 6});
    const Message m = read_message(f);
    const Target t = read_target(f);
    EXPECT_EQ(m.number + m.offset * 10 + m.total * 100 + m.immediate * 1000, 4321u);
    EXPECT_EQ(t.address * 10 + t.handle, 56u);

    Selective s;
    s.set(0);
    s.set(63);
    s.set(255);
    write_selective(room, s);
    EXPECT_EQ(room[0], std::byte{0x80}) << "bit 0 is the highest of the first byte";
    const Selective s2 = read_selective(f);
    for (uint32_t i = 0; i < kWindow; ++i) EXPECT_EQ(s2.has(i), i == 0 || i == 63 || i == 255) << i;

    write_atomic_request(room, {1, 2, 3, 4, 5, 2, 4});
    const AtomicRequest a = read_atomic_request(f);
    EXPECT_EQ(a.address * 100000 + a.handle * 10000 + a.number * 1000 + a.operand * 100 + a.compare * 10,
              123450u);
    EXPECT_EQ(a.operation, 2);
    EXPECT_EQ(a.width, 4);
}

TEST(WireFormat, SequenceNumbersCompareAcrossTheirWrap) {
    EXPECT_TRUE(before(1, 2));
    EXPECT_FALSE(before(2, 2));
    EXPECT_TRUE(before(0xFFFFFFFF, 0));
    EXPECT_FALSE(before(5, 0xFFFFFFF0));
}

// ---- encapsulation

TEST(WireEncapsulation, EthernetFramesCarryTheTypeAndBothAddresses) {
    std::vector<std::byte> frame(200);
    const Ethernet link{test::address(1)};
    link.write(frame.data(), test::address(2), 100);
    EXPECT_EQ(load16(frame.data() + 12), kEtherType);
    NicAddress from;
    std::span<const std::byte> inside;
    EXPECT_FALSE(link.read(frame, &from, &inside)) << "a frame for another host";
    const Ethernet there{test::address(2)};
    ASSERT_TRUE(there.read(frame, &from, &inside));
    EXPECT_EQ(from, test::address(1));
    EXPECT_EQ(inside.data(), frame.data() + 14);
    store16(frame.data() + 12, 0x0800);
    EXPECT_FALSE(there.read(frame, &from, &inside));
    EXPECT_FALSE(there.read({frame.data(), 13}, &from, &inside));
}

TEST(WireEncapsulation, UdpFramesAreIpPacketsWithAGoodChecksum) {
    const NicAddress here = udp_address(0x0A000001, 4000), there = udp_address(0x0A000002, 5000);
    const Udp link{here, test::address(1), test::address(9)};
    std::vector<std::byte> frame(Udp::kBytes + 60, std::byte{7});
    link.write(frame.data(), there, 60);
    EXPECT_EQ(load16(frame.data() + 12), 0x0800);
    EXPECT_EQ(load16(frame.data() + 16), 20 + 8 + 60) << "IP total length";
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += load16(frame.data() + 14 + i);
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    EXPECT_EQ(sum, 0xFFFFu) << "the sum over a good header is all ones";

    const Udp other{there, test::address(9), test::address(1)};
    NicAddress from;
    std::span<const std::byte> inside;
    ASSERT_TRUE(other.read(frame, &from, &inside));
    EXPECT_EQ(from, here);
    EXPECT_EQ(inside.size(), 60u);
    EXPECT_FALSE(link.read(frame, &from, &inside)) << "a packet for another host";
    for (size_t n = 0; n < frame.size(); ++n)
        EXPECT_FALSE(other.read({frame.data(), n}, &from, &inside)) << n;
    store8(frame.data() + 14, 0x46);  // options: not ours
    EXPECT_FALSE(other.read(frame, &from, &inside));
}

}  // namespace
}  // namespace viaduct::wire
