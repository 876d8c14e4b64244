// SPDX-License-Identifier: BSD-2-Clause
// Sockets connected to busy peers: nothing that comes is lost or waits for ever, whichever socket it comes to; a socket
// that cannot be had, an error that a network reports, and more peers than sockets cost no frame.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "providers/udp/address.hpp"
#include "providers/udp/sockets.hpp"
#include "udp_bound_socket.hpp"

namespace viaduct::udp {
namespace {

constexpr int kEnough = 100;  // frames after which a peer has a socket where there is one
constexpr int kTakes = 64;    // after so many all sockets have been asked
// Each process has an address from here on to itself: no other takes a port of it while it is free.
constexpr in_addr_t kOwnHosts = 0x7F400000;

// A program at another port of this host.
struct Peer {
    explicit Peer(in_addr_t host = INADDR_LOOPBACK)
        : socket(tests::bound_socket(host, &at)), address(from_socket_address(at)) {}

    void say(const sockaddr_in& to, char what) {
        ASSERT_EQ(::sendto(socket.get(), &what, 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 1);
    }
    // The number of datagrams in the socket's queue. Each must be from `from`.
    size_t hears(const sockaddr_in& from) {
        size_t n = 0;
        char byte;
        sockaddr_in who{};
        for (socklen_t bytes = sizeof who;
             ::recvfrom(socket.get(), &byte, 1, 0, reinterpret_cast<sockaddr*>(&who), &bytes) == 1; ++n) {
            EXPECT_EQ(from_socket_address(who), from_socket_address(from));
        }
        return n;
    }

    sockaddr_in at;
    Fd socket;
    NicAddress address;
};

class UdpSocketsTest : public testing::Test {
protected:
    UdpSocketsTest() : own_(tests::bound_socket(INADDR_LOOPBACK, &here_)) {}

    Sockets& make(uint32_t connected) {
        sockets_ = std::make_unique<Sockets>(std::move(own_), here_, Sockets::Options{connected, 0});
        return *sockets_;
    }
    // As UdpPort does: what a connected socket does not send goes through the own one.
    void send(const Peer& to, int times = 1) {
        for (int i = 0; i < times; ++i) {
            const Sockets::Route route = sockets_->toward(to.address);
            if (route.connected) {
                if (::send(route.socket, "x", 1, MSG_DONTWAIT) == 1) continue;
                sockets_->note_error();
            }
            ASSERT_EQ(::sendto(sockets_->own(), "x", 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to.at),
                               sizeof to.at),
                      1);
        }
    }
    // What has come, sorted, taken as the engine does.
    std::string taken() {
        std::string all = taken_in_order();
        std::sort(all.begin(), all.end());
        return all;
    }
    std::string taken_in_order() {
        std::string all;
        for (int i = 0; i < kTakes; ++i) {
            sockets_->take([&](int socket) {
                char byte;
                if (::recv(socket, &byte, 1, MSG_DONTWAIT) != 1) return false;
                all += byte;
                return true;
            });
        }
        return all;
    }
    bool wakes() const {
        pollfd p{sockets_->wait_fd(), POLLIN, 0};
        return ::poll(&p, 1, 0) == 1;
    }

    sockaddr_in here_{};
    Fd own_;
    std::unique_ptr<Sockets> sockets_;
};

TEST_F(UdpSocketsTest, ABusyPeerHasASocketAndSeesTheSameAddress) {
    make(4);
    Peer busy, other;
    send(busy, kEnough);
    EXPECT_EQ(sockets_->connected(), 1u);
    EXPECT_TRUE(sockets_->toward(busy.address).connected);
    EXPECT_FALSE(sockets_->toward(other.address).connected);
    send(other);
    EXPECT_EQ(busy.hears(here_), static_cast<size_t>(kEnough));
    EXPECT_EQ(other.hears(here_), 1u);
}

TEST_F(UdpSocketsTest, WhatComesIsTakenWhereverItComesTo) {
    make(4);
    Peer a, b, c;
    send(a, kEnough);
    send(b, kEnough);
    ASSERT_EQ(sockets_->connected(), 2u);
    EXPECT_FALSE(wakes());
    for (int round = 0; round < 20; ++round) {
        a.say(here_, 'a');
        b.say(here_, 'b');
        c.say(here_, 'c');
        EXPECT_TRUE(wakes());
        EXPECT_EQ(taken(), "abc");
        EXPECT_FALSE(wakes());
    }
    // One that sends without a pause keeps none of the others waiting.
    std::string all;
    for (int i = 0; i < kTakes; ++i) {
        a.say(here_, 'a');
        if (i == 8) c.say(here_, 'c');
        sockets_->take([&](int socket) {
            char byte;
            if (::recv(socket, &byte, 1, MSG_DONTWAIT) != 1) return false;
            all += byte;
            return true;
        });
    }
    EXPECT_NE(all.find('c'), std::string::npos);
}

TEST_F(UdpSocketsTest, NoFrameIsLostWhileASocketIsConnected) {
    make(8);
    std::vector<std::unique_ptr<Peer>> peers;
    for (int i = 0; i < 8; ++i) peers.push_back(std::make_unique<Peer>());
    for (int i = 0; i < kEnough; ++i) {
        for (const auto& peer : peers) {
            send(*peer);
            peer->say(here_, 'x');
        }
        EXPECT_EQ(taken(), std::string(8, 'x'));
    }
    EXPECT_EQ(sockets_->connected(), 8u);
}

// Nothing restores the order of an Unreliable connection's messages (spec/compat T21).
TEST_F(UdpSocketsTest, FramesOfAPeerKeepTheirOrderWhenItGetsASocket) {
    make(2);
    Peer first, second, third;
    send(first, kEnough);
    first.say(here_, 'x');
    ASSERT_EQ(taken(), "x");  // from a connected socket, which is asked first from now on
    for (Peer* peer : {&second, &third}) {
        for (char c : {'a', 'b', 'c'}) peer->say(here_, c);
        send(*peer, kEnough);
        if (peer == &third)  // takes the socket of one that is idle
            for (int i = 0; i < 16 * kEnough; ++i) send(*peer);
        ASSERT_TRUE(sockets_->toward(peer->address).connected);
        for (char c : {'d', 'e', 'f'}) peer->say(here_, c);
        EXPECT_EQ(taken_in_order(), "abcdef");
        peer->hears(here_);
    }
}

TEST_F(UdpSocketsTest, ASocketWithFramesOfItsPeerIsNotGivenAway) {
    make(1);
    Peer idle, busy;
    send(idle, kEnough);
    ASSERT_TRUE(sockets_->toward(idle.address).connected);
    for (char c : {'a', 'b'}) idle.say(here_, c);
    send(busy, 16 * kEnough);
    EXPECT_FALSE(sockets_->toward(busy.address).connected);
    idle.say(here_, 'c');
    EXPECT_EQ(taken_in_order(), "abc");
    busy.hears(here_);
    send(busy, 16 * kEnough);
    EXPECT_TRUE(sockets_->toward(busy.address).connected);
}

TEST_F(UdpSocketsTest, ASocketWithFramesIsNotGivenAwayForAnErrorThatComesFirst) {
    make(1);
    Peer idle(kOwnHosts | (static_cast<in_addr_t>(::getpid()) & 0x3FFFFF)), busy;
    send(idle, kEnough);
    ASSERT_TRUE(sockets_->toward(idle.address).connected);
    idle.say(here_, 'a');
    idle.socket.reset();
    send(idle);  // refused, which the next call on the socket is told
    send(busy, 16 * kEnough);
    EXPECT_FALSE(sockets_->toward(busy.address).connected);
    EXPECT_EQ(taken_in_order(), "a");
    send(busy, 16 * kEnough);
    EXPECT_TRUE(sockets_->toward(busy.address).connected);
}

TEST_F(UdpSocketsTest, WhatComesToTheOwnSocketLaterKeepsNoPeerWaiting) {
    make(2);
    Peer peer, other;
    constexpr int kOlder = 100;
    for (int i = 0; i < kOlder; ++i) peer.say(here_, 'a');
    send(peer, kEnough);
    ASSERT_TRUE(sockets_->toward(peer.address).connected);
    peer.say(here_, 'b');
    std::string all;
    for (int i = 0; i < 2000 && all.find('b') == std::string::npos; ++i) {
        other.say(here_, 's');
        sockets_->take([&](int socket) {
            char byte;
            if (::recv(socket, &byte, 1, MSG_DONTWAIT) != 1) return false;
            all += byte;
            return true;
        });
    }
    EXPECT_NE(all.find('b'), std::string::npos) << "what others send comes first for ever";
    EXPECT_EQ(std::count(all.begin(), all.end(), 'a'), kOlder);
}

TEST_F(UdpSocketsTest, APeerThatIsNotUsedAnyMoreGivesItsSocketAway) {
    make(2);
    Peer a, b, c;
    send(a, kEnough);
    send(b, kEnough);
    for (int i = 0; i < 4 * kEnough; ++i) {  // three are in use: none takes the socket of another
        for (const Peer* peer : {&a, &b, &c}) send(*peer);
    }
    EXPECT_TRUE(sockets_->toward(a.address).connected);
    EXPECT_TRUE(sockets_->toward(b.address).connected);
    EXPECT_FALSE(sockets_->toward(c.address).connected);
    a.hears(here_);
    b.hears(here_);
    c.hears(here_);
    for (int i = 0; i < 16 * kEnough; ++i) {  // a is silent
        send(b);
        send(c);
    }
    EXPECT_EQ(sockets_->connected(), 2u);
    EXPECT_TRUE(sockets_->toward(c.address).connected);
    EXPECT_TRUE(sockets_->toward(b.address).connected);
    EXPECT_FALSE(sockets_->toward(a.address).connected);
    send(a);
    EXPECT_EQ(a.hears(here_), 1u);
    for (Peer* peer : {&a, &b, &c}) peer->say(here_, 'x');
    EXPECT_EQ(taken(), "xxx");
}

TEST_F(UdpSocketsTest, AnErrorOfTheNetworkIsAHintAndNoMore) {
    make(4);
    auto gone = std::make_unique<Peer>(kOwnHosts | (static_cast<in_addr_t>(::getpid()) & 0x3FFFFF));
    const Peer other;
    send(*gone, kEnough);
    ASSERT_TRUE(sockets_->toward(gone->address).connected);
    const sockaddr_in there = gone->at;
    gone.reset();
    Peer again;  // at the same port a moment later
    again.address = from_socket_address(there);
    again.at = there;
    send(again, 3);  // refused (ECONNREFUSED), which no caller notices
    again.socket = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(::bind(again.socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
    send(again, 3);
    EXPECT_EQ(again.hears(here_), 3u);
    again.say(here_, 'x');
    EXPECT_EQ(taken(), "x");
    sockets_->take_reports();  // as before each sleep
    EXPECT_FALSE(wakes()) << "an error that was told once keeps no thread awake";
}

// Of the peer at that port, once, whichever socket its frames leave by; until then a thread that sleeps is woken.
TEST_F(UdpSocketsTest, AClosedPortIsReported) {
    make(4);
    const in_addr_t host = kOwnHosts | (static_cast<in_addr_t>(::getpid()) & 0x3FFFFF);
    NicAddress peer;
    EXPECT_FALSE(sockets_->next_closed(&peer));
    for (const int frames : {1, kEnough}) {
        auto gone = std::make_unique<Peer>(host);
        send(*gone, frames);
        EXPECT_EQ(sockets_->toward(gone->address).connected, frames == kEnough);
        const sockaddr_in there = gone->at;
        gone.reset();
        const Sockets::Route route = sockets_->toward(from_socket_address(there));
        const auto* const named = reinterpret_cast<const sockaddr*>(&there);
        for (int i = 0; i < 3; ++i) {
            if (::sendto(route.socket, "x", 1, MSG_DONTWAIT, route.connected ? nullptr : named,
                         route.connected ? 0 : sizeof there) != 1)
                sockets_->note_error();
        }
        EXPECT_TRUE(wakes());
        ASSERT_TRUE(sockets_->next_closed(&peer));
        EXPECT_EQ(peer, from_socket_address(there));
        EXPECT_FALSE(sockets_->next_closed(&peer));
        taken();  // the error of the last frame
        sockets_->note_error();
        sockets_->take_reports();
        EXPECT_FALSE(wakes());
    }
    EXPECT_GE(sockets_->closed_reports(), 2u);
}

TEST_F(UdpSocketsTest, WithoutADescriptorItGoesOnWithout) {
    make(4);
    Peer busy;
    rlimit before{}, none{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
    send(busy, 2 * kEnough);
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(sockets_->connected(), 0u);
    EXPECT_EQ(busy.hears(here_), static_cast<size_t>(2 * kEnough));
    busy.say(here_, 'x');
    EXPECT_TRUE(wakes());
    EXPECT_EQ(taken(), "x");
}

TEST_F(UdpSocketsTest, NoOtherSocketCanBeBoundToThePort) {
    make(4);
    Peer busy;
    send(busy, kEnough);
    ASSERT_EQ(sockets_->connected(), 1u);
    const Fd thief(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(thief.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    ::setsockopt(thief.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_NE(::bind(thief.get(), reinterpret_cast<const sockaddr*>(&here_), sizeof here_), 0);
}

}  // namespace
}  // namespace viaduct::udp
