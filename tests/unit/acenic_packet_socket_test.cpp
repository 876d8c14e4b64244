// SPDX-License-Identifier: BSD-2-Clause
// The packet socket by which an af_packet port sends, on the loopback interface. Needs CAP_NET_RAW.
#include "providers/acenic/packet_socket.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "tests/eventually.hpp"

namespace viaduct::acenic {
namespace {

// A type of frames that no other program uses, and another one in each process: tests run beside each other on one
// interface.
const auto kType = static_cast<uint16_t>(0xF000 | (::getpid() & 0xFFF));

class AcenicPacketSocket : public testing::Test {
protected:
    void SetUp() override {
        heard_ = Fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
        if (!heard_.valid()) GTEST_SKIP() << "packet sockets need CAP_NET_RAW";
        sockaddr_ll at{};
        at.sll_family = AF_PACKET;
        at.sll_protocol = htons(kType);
        at.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
        ASSERT_EQ(::bind(heard_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
        socket_ = PacketSocket::open("lo");
        ASSERT_NE(socket_, nullptr);
    }

    // A frame of so many pieces of so many bytes each, which begins as Ethernet does.
    rte_mbuf* frame(uint32_t pieces, uint16_t bytes, std::byte filling) {
        rte_mbuf* first = nullptr;
        rte_mbuf* last = nullptr;
        for (uint32_t i = 0; i < pieces; ++i) {
            std::vector<std::byte>& memory = memories_.emplace_back(bytes, filling);
            rte_mbuf& m = frames_.emplace_back();
            std::memset(&m, 0, sizeof m);
            m.buf_addr = memory.data();
            m.data_len = bytes;
            m.nb_segs = 1;
            (first == nullptr ? first : last->next) = &m;
            last = &m;
        }
        first->nb_segs = static_cast<uint16_t>(pieces);
        first->pkt_len = pieces * uint32_t{bytes};
        auto* head = static_cast<std::byte*>(first->buf_addr);
        std::memset(head, 0, 12);
        head[12] = static_cast<std::byte>(kType >> 8);
        head[13] = static_cast<std::byte>(kType & 0xFF);
        return first;
    }

    // The next frame that comes; empty: none does.
    std::vector<std::byte> heard() {
        std::vector<std::byte> bytes(1 << 17);
        pollfd ready{heard_.get(), POLLIN, 0};
        if (!tests::eventually("a frame comes", [&] { return ::poll(&ready, 1, 0) == 1; })) return {};
        const ssize_t n = ::recv(heard_.get(), bytes.data(), bytes.size(), 0);
        bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
        return bytes;
    }

    Fd heard_;
    std::unique_ptr<PacketSocket> socket_;
    std::deque<rte_mbuf> frames_;
    std::deque<std::vector<std::byte>> memories_;
};

TEST_F(AcenicPacketSocket, AFrameOfPiecesArrivesWhole) {
    rte_mbuf* burst[] = {frame(1, 64, std::byte{1}), frame(5, 2000, std::byte{2}), frame(1, 60, std::byte{3})};
    ASSERT_EQ(socket_->send(burst, 3), 3u);
    for (const uint32_t bytes : {64u, 10'000u, 60u}) {
        const std::vector<std::byte> got = heard();
        ASSERT_EQ(got.size(), bytes);
        const std::byte filling{bytes == 64 ? uint8_t{1} : bytes == 60 ? uint8_t{3} : uint8_t{2}};
        for (size_t i = 14; i < bytes; ++i) ASSERT_EQ(got[i], filling) << i;
    }
}

TEST_F(AcenicPacketSocket, AFrameThatIsRefusedForGoodIsLostAndDelaysNoOther) {
    rte_mbuf* burst[] = {frame(5, 16'000, std::byte{1}), frame(1, 64, std::byte{2}), frame(5, 16'000, std::byte{3}),
                         frame(1, 65, std::byte{4})};
    ASSERT_EQ(socket_->send(burst, 4), 4u);  // the interface takes 65,536 bytes
    EXPECT_EQ(heard().size(), 64u);
    EXPECT_EQ(heard().size(), 65u);
}

TEST_F(AcenicPacketSocket, WhatIsTooLargeIsCounted) {
    rte_mbuf* burst[] = {frame(5, 16'000, std::byte{1}), frame(1, 64, std::byte{2})};
    ASSERT_EQ(socket_->send(burst, 2), 2u);
    EXPECT_EQ(socket_->lost().too_large, 1u);
    EXPECT_EQ(socket_->lost().not_taken + socket_->lost().other, 0u);
}

TEST_F(AcenicPacketSocket, ThereIsNoneForAnInterfaceThatDoesNotExist) {
    EXPECT_EQ(PacketSocket::open("viaduct-none"), nullptr);
}

}  // namespace
}  // namespace viaduct::acenic
