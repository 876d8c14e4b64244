// SPDX-License-Identifier: BSD-2-Clause
// The socket of one client, as the agent counts the descriptors that it has sent.
#include "kagent/client.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <utility>

namespace viaduct::kagent {
namespace {

struct Pair {
    Fd agent, peer;
    Pair() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        agent = Fd(ends[0]);
        peer = Fd(ends[1]);
    }
};

Mail with_files(int count) {
    Mail m(Type::kStatusText);
    for (int i = 0; i < count; ++i) m.descriptors.push_back(Fd(::memfd_create("test", MFD_CLOEXEC)));
    return m;
}

TEST(KagentClient, CountsTheDescriptorsOfUnreadMessagesOnly) {
    Pair sockets;
    Client c(std::move(sockets.agent), Fd(), Credentials{});
    for (int turn = 0; turn < 5; ++turn) {
        ASSERT_EQ(c.send(with_files(1)), Status::ok);
        EXPECT_EQ(c.in_flight(), 1u) << "turn " << turn;
        Mail got;
        ASSERT_EQ(receive_mail(sockets.peer.get(), &got), Status::ok);
        ASSERT_EQ(got.descriptors.size(), 1u);
    }
    // Messages that had to wait for room are counted as they are sent.
    int sent = 0;
    while (c.send(with_files(1)) == Status::ok) ++sent;
    ASSERT_TRUE(c.wants_to_write());
    EXPECT_EQ(c.in_flight(), static_cast<size_t>(sent));
    Mail got;
    while (receive_mail(sockets.peer.get(), &got) == Status::ok) continue;
    EXPECT_EQ(c.flush(), Status::ok);
    EXPECT_EQ(c.in_flight(), 1u);
    ASSERT_EQ(receive_mail(sockets.peer.get(), &got), Status::ok);
    EXPECT_EQ(c.in_flight(), 0u);
}

}  // namespace
}  // namespace viaduct::kagent
