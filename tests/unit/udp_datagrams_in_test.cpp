// SPDX-License-Identifier: BSD-2-Clause
// What comes to a UDP socket is told frame by frame, however the kernel has put it together.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/datagrams_in.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"
#include "providers/wire/header_words.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace viaduct::udp {
namespace {

using Bytes = std::vector<std::byte>;

// As far as its length goes.
Bytes frame_of(uint32_t bytes, uint8_t mark, uint8_t version = wire::kVersion) {
    Bytes frame(bytes, std::byte{mark});
    wire::store8(frame.data(), version);
    wire::store16(frame.data() + wire::kLengthAt, static_cast<uint16_t>(bytes - wire::kHeaderBytes));
    return frame;
}

class DatagramsInTest : public testing::Test {
protected:
    DatagramsInTest() : sender_(socket()), receiver_(socket()) {
        socklen_t length = sizeof to_;
        ::getsockname(receiver_.get(), reinterpret_cast<sockaddr*>(&to_), &length);
        const int on = 1;
        ::setsockopt(receiver_.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    }

    static Fd socket() {
        Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
        return fd;
    }

    void send(const Bytes& data, int each = 0) {
        ::setsockopt(sender_.get(), IPPROTO_UDP, UDP_SEGMENT, &each, sizeof each);
        ASSERT_EQ(::sendto(sender_.get(), data.data(), data.size(), 0, reinterpret_cast<sockaddr*>(&to_), sizeof to_),
                  static_cast<ssize_t>(data.size()));
    }

    bool next(std::span<const std::byte>* frame, NicAddress* from) {
        if (in_.is_empty()) in_.fetch(receiver_.get());
        return in_.next(frame, from);
    }
    // The next frame is this one, and comes from the sender.
    void expect(const Bytes& wanted) {
        std::span<const std::byte> frame;
        NicAddress from;
        ASSERT_TRUE(next(&frame, &from));
        ASSERT_EQ(frame.size(), wanted.size());
        EXPECT_EQ(std::memcmp(frame.data(), wanted.data(), wanted.size()), 0);
        sockaddr_in here;
        socklen_t length = sizeof here;
        ::getsockname(sender_.get(), reinterpret_cast<sockaddr*>(&here), &length);
        EXPECT_EQ(from, from_socket_address(here));
    }
    void expect_nothing() {
        std::span<const std::byte> frame;
        NicAddress from;
        EXPECT_FALSE(next(&frame, &from));
    }

    Fd sender_, receiver_;
    sockaddr_in to_{};
    DatagramsIn in_;
};

TEST_F(DatagramsInTest, ATrainIsTakenApartAndItsLastFrameMayBeShorter) {
    const Bytes a = frame_of(100, 1), b = frame_of(100, 2), c = frame_of(60, 3);
    Bytes train = a;
    train.insert(train.end(), b.begin(), b.end());
    train.insert(train.end(), c.begin(), c.end());
    for (int round = 0; round < 3; ++round) {
        send(train, 100);
        for (const Bytes& frame : {a, b, c}) expect(frame);
        expect_nothing();
    }
}

TEST_F(DatagramsInTest, SingleFramesComeInOrderThoughSeveralAreTakenByOneCall) {
    for (uint8_t i = 0; i < 40; ++i) send(frame_of(50u + i, i));
    for (uint8_t i = 0; i < 40; ++i) expect(frame_of(50u + i, i));
    expect_nothing();
    EXPECT_TRUE(in_.is_empty());
    EXPECT_EQ(in_.trains(), 0u);
}

TEST_F(DatagramsInTest, WhatIsNoFrameOfThisVersionIsWhole) {
    Bytes strange = frame_of(100, 1, wire::kVersion + 1);
    wire::store16(strange.data() + wire::kLengthAt, 3);
    const Bytes tiny(7, std::byte{wire::kVersion});
    send(strange);
    send(tiny);
    expect(strange);
    expect(tiny);
    expect_nothing();
}

TEST_F(DatagramsInTest, ALengthBeyondTheDatagramEndsWithIt) {
    Bytes wrong = frame_of(100, 1);
    wire::store16(wrong.data() + wire::kLengthAt, 60000);
    send(wrong);
    expect(wrong);
    expect_nothing();
}

TEST_F(DatagramsInTest, ADatagramOfNothingHidesNothing) {
    send({});
    send(frame_of(64, 5));
    expect_nothing();
    expect(frame_of(64, 5));
}

}  // namespace
}  // namespace viaduct::udp
