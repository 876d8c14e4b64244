// SPDX-License-Identifier: BSD-2-Clause
// The daemon's answers at the ports of programs that have ended: a peer gets what an end without the connection
// answers; a port that another socket has, of another address or below 1024 is not taken; a frame with a key ends it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "providers/udp/address.hpp"
#include "providers/udp/daemon/dead_ports.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/format.hpp"
#include "udp_bound_socket.hpp"
#include "udp_frame_to_port.hpp"

namespace viaduct::udp {
namespace {

constexpr int kAnswerWithinMs = 20'000;
constexpr int64_t kBegin = 1'000'000'000, kOneMs = 1'000'000;
constexpr uid_t kOneUser = 7, kOtherUser = 8;
// An address of this process alone.
const in_addr_t kHostOfDead = 0x7F500000 | (static_cast<in_addr_t>(::getpid()) & 0x0FFFFF);

class DeadPortsTest : public testing::Test {
protected:
    DeadPortsTest()
        : peer_(tests::bound_socket(kHostOfDead, &peer_at_)),
          program_(tests::bound_socket(kHostOfDead, &program_at_)) {}

    NicAddress program() const { return from_socket_address(program_at_); }
    void send(wire::Kind kind, uint16_t flags = 0) { tests::send_frame(peer_, program_at_, kind, flags); }
    // What the peer gets: false, nothing.
    bool answer(wire::Header* h) {
        epoll_event event;
        if (::epoll_wait(epoll_.get(), &event, 1, kAnswerWithinMs) == 1) {
            EXPECT_EQ(event.data.ptr, this);
            ports_.take_frames(now_);
        }
        std::byte bytes[wire::kMinFrame];
        const ssize_t n = ::recv(peer_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        wire::Frame f;
        if (n < 0 || wire::read_frame({bytes, static_cast<size_t>(n)}, &f) != wire::Flaw::none) return false;
        *h = f.header;
        return true;
    }
    bool is_taken() {
        const Fd other(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        return ::bind(other.get(), reinterpret_cast<sockaddr*>(&program_at_), sizeof program_at_) != 0;
    }

    int64_t now_ = kBegin;
    Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
    DeadPorts ports_{wire::udp_address(kHostOfDead, 4792), epoll_.get(), this};
    sockaddr_in peer_at_{}, program_at_{};
    Fd peer_, program_;
};

TEST_F(DeadPortsTest, APeerGetsWhatAnEndWithoutTheConnectionAnswers) {
    program_.reset();
    ports_.add(kOneUser, program(), now_);
    EXPECT_FALSE(ports_.is_trying());
    wire::Header h;
    for (const wire::Kind kind : {wire::Kind::keep_alive, wire::Kind::send, wire::Kind::accept}) {
        send(kind);
        ASSERT_TRUE(answer(&h));
        EXPECT_EQ(h.kind, wire::Kind::reset);
        EXPECT_EQ(h.destination, 88u);
        EXPECT_EQ(h.source, 77u);
        EXPECT_EQ(h.sequence, 2000u) << "what the peer expects next";
        EXPECT_EQ(h.pass, 0x1122334455667788u);
    }
    send(wire::Kind::disconnect);
    ASSERT_TRUE(answer(&h));
    EXPECT_EQ(h.kind, wire::Kind::disconnected);
    for (const wire::Kind kind : {wire::Kind::reset, wire::Kind::request, wire::Kind::no_match}) {
        send(kind);
        EXPECT_FALSE(answer(&h)) << name_of(kind);
    }
}

TEST_F(DeadPortsTest, APortIsKeptForATimeAndNoLonger) {
    program_.reset();
    ports_.add(kOneUser, program(), now_);
    ports_.look(now_ + DeadPorts::kKept);
    EXPECT_TRUE(is_taken());
    ports_.look(now_ + DeadPorts::kKept + kOneMs);
    EXPECT_FALSE(is_taken());
    EXPECT_EQ(ports_.count(), 0u);
}

// A process that ends closes its sockets one by one, and the daemon may see the first one.
TEST_F(DeadPortsTest, APortThatIsNotFreeYetIsTriedAgain) {
    ports_.add(kOneUser, program(), now_);
    EXPECT_TRUE(ports_.is_trying());
    ports_.look(now_ + kOneMs);
    EXPECT_TRUE(ports_.is_trying());
    program_.reset();
    ports_.look(now_ + 2 * kOneMs);
    EXPECT_FALSE(ports_.is_trying());
    EXPECT_TRUE(is_taken());
}

TEST_F(DeadPortsTest, APortThatAnotherSocketHasIsLeftToIt) {
    ports_.add(kOneUser, program(), now_);
    ports_.look(now_ + DeadPorts::kTriedFor + kOneMs);
    EXPECT_EQ(ports_.count(), 0u);
    send(wire::Kind::keep_alive);
    char byte;
    EXPECT_EQ(::recv(program_.get(), &byte, 1, MSG_TRUNC), ssize_t{wire::kHeaderBytes + wire::kSelectiveBytes});
}

// The daemon has no key. The kernel's report of a closed port is better than no answer.
TEST_F(DeadPortsTest, AFrameWithAKeyEndsIt) {
    program_.reset();
    ports_.add(kOneUser, program(), now_);
    send(wire::Kind::keep_alive, wire::kFlagTagged);
    wire::Header h;
    EXPECT_FALSE(answer(&h));
    EXPECT_FALSE(is_taken());
}

TEST_F(DeadPortsTest, OnlyPortsThatAProgramOfThisAddressCanHaveAreTaken) {
    program_.reset();
    ports_.add(kOneUser, wire::udp_address(0x7F5FFFFF, ntohs(program_at_.sin_port)), now_);
    ports_.add(kOneUser, wire::udp_address(kHostOfDead, 1023), now_);
    EXPECT_EQ(ports_.count(), 0u);
}

TEST_F(DeadPortsTest, AUserMayHaveAPartOfThem) {
    for (size_t i = 0; i != DeadPorts::kMost; ++i) ports_.add(kOneUser, program(), now_);
    EXPECT_EQ(ports_.count(), DeadPorts::kMostOfUser);
    program_.reset();
    ports_.look(now_ + DeadPorts::kTriedFor + kOneMs);
    ports_.add(kOtherUser, program(), now_ + DeadPorts::kTriedFor + kOneMs);
    EXPECT_LE(ports_.count(), DeadPorts::kMostOfUser + 1);
    EXPECT_TRUE(is_taken());
}

}  // namespace
}  // namespace viaduct::udp
