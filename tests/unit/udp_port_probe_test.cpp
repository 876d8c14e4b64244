// SPDX-License-Identifier: BSD-2-Clause
// Questions whether anything listens at a port: a closed one is told, each question once; an open one drops them; what
// others send to the socket is no refusal.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "tests/eventually.hpp"

#include "providers/udp/address.hpp"
#include "providers/udp/port_probe.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/version_answer.hpp"

namespace viaduct::udp {
namespace {

class UdpPortProbeTest : public testing::Test {
protected:
    UdpPortProbeTest() : listener_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof here;
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
        EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&here), &bytes), 0);
        there_ = from_socket_address(here);
    }

    // A port at which nothing listens: one that a connected socket has, which takes nothing of others.
    void close_port() {
        sockaddr_in discard = to_socket_address(there_);
        discard.sin_port = htons(9);
        ASSERT_EQ(::connect(listener_.get(), reinterpret_cast<sockaddr*>(&discard), sizeof discard), 0);
    }

    bool refused(wire::Question* q) {
        pollfd p{probe_.socket(), 0, 0};
        if (probe_.next_refused(q)) return true;
        const auto is_answered = [&p] { return ::poll(&p, 1, 0) == 1; };
        return tests::eventually("the kernel answers", is_answered) && probe_.next_refused(q);
    }

    Fd listener_;
    NicAddress there_;
    PortProbe probe_{there_};
};

TEST_F(UdpPortProbeTest, AClosedPortIsToldEachQuestionOnce) {
    close_port();
    wire::Question q;
    EXPECT_FALSE(probe_.next_refused(&q));
    for (uint32_t i = 0; i < 4; ++i) {
        probe_.ask(there_, {77, i, 0x1122334455667788});
        ASSERT_TRUE(refused(&q));
        EXPECT_EQ(q.link, 77u);
        EXPECT_EQ(q.number, i);
        EXPECT_EQ(q.nonce, 0x1122334455667788u);
        EXPECT_FALSE(probe_.next_refused(&q));
    }
    EXPECT_EQ(probe_.refused(), 4u);
}

TEST_F(UdpPortProbeTest, ARefusalThatHasNotBeenTakenKeepsNoQuestionBack) {
    close_port();
    for (uint32_t i = 0; i < 4; ++i) probe_.ask(there_, {1, i, 2});
    wire::Question q;
    for (uint32_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(refused(&q));
        EXPECT_EQ(q.number, i);
    }
}

// viaduct-udpd drops it, and so does every version: it is too short to be a request.
TEST_F(UdpPortProbeTest, AnOpenPortGetsWhatNothingAnswers) {
    probe_.ask(there_, {1, 2, 3});
    std::array<std::byte, 100> came{};
    sockaddr_in from{};
    socklen_t bytes = sizeof from;
    const ssize_t n =
        ::recvfrom(listener_.get(), came.data(), came.size(), 0, reinterpret_cast<sockaddr*>(&from), &bytes);
    ASSERT_EQ(n, 24);
    const std::span<const std::byte> datagram(came.data(), static_cast<size_t>(n));
    EXPECT_EQ(wire::load8(datagram.data()), 0);
    EXPECT_FALSE(wire::asks_for_version(datagram));
    EXPECT_FALSE(wire::is_version_answer(datagram));
    EXPECT_EQ(text_of_ip(from_socket_address(from)), text_of_ip(there_));
    wire::Question q;
    EXPECT_FALSE(probe_.next_refused(&q));
    // What comes back takes no room, and is no refusal.
    EXPECT_EQ(::sendto(listener_.get(), came.data(), 24, 0, reinterpret_cast<sockaddr*>(&from), bytes), 24);
    EXPECT_EQ(::recv(probe_.socket(), came.data(), came.size(), MSG_DONTWAIT), -1);
    EXPECT_FALSE(probe_.next_refused(&q));
}

}  // namespace
}  // namespace viaduct::udp
