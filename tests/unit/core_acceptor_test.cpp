// SPDX-License-Identifier: BSD-2-Clause
// A server without a descriptor left: who goes, who is turned away, and that no connection keeps its loop busy.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "core/fair/acceptor.hpp"
#include "no_descriptors.hpp"
#include "unix_listener.hpp"

namespace viaduct::fair {
namespace {

using Next = Acceptor::Next;
using tests::NoDescriptors;

struct Server {
    Server()
        : epoll(::epoll_create1(EPOLL_CLOEXEC)), acceptor(listener.listening(16), epoll.get(), epoll_data_t{this}) {}

    Fd client() const { return listener.client(); }
    Next next(int64_t now = 1) { return acceptor.next(pending, now, &out, &oldest); }
    bool is_readable() const {
        epoll_event e{};
        return ::epoll_wait(epoll.get(), &e, 1, 0) == 1;
    }

    tests::UnixListener listener;
    const Fd epoll;
    Acceptor acceptor;
    PendingConnections pending{32, 128};
    Fd out;
    uint64_t oldest = 0;
};

TEST(AcceptorTest, ConnectionsAreAcceptedWhileThereAreDescriptors) {
    Server server;
    EXPECT_FALSE(server.is_readable());
    EXPECT_EQ(server.next(), Next::none);
    const Fd one = server.client(), two = server.client();
    EXPECT_TRUE(server.is_readable());
    EXPECT_EQ(server.next(), Next::connection);
    const Fd first = std::move(server.out);
    EXPECT_EQ(server.next(), Next::connection);
    EXPECT_EQ(server.next(), Next::none);
    EXPECT_FALSE(server.acceptor.rests());
}

TEST(AcceptorTest, WithoutADescriptorTheOldestSilentOneOfTheLargestUserGoes) {
    Server server;
    const Fd waits = server.client();
    server.pending.add(8, 1);
    server.pending.add(7, 2);
    server.pending.add(7, 3);
    const NoDescriptors none;
    EXPECT_EQ(server.next(), Next::evict);
    EXPECT_EQ(server.oldest, 2u);
    EXPECT_EQ(server.next(), Next::evict) << "until it has gone";
    server.pending.remove(7, 2);
    server.pending.remove(7, 3);
    server.pending.remove(8, 1);
    EXPECT_EQ(server.next(), Next::turn_away) << "there is none that could go";
    EXPECT_TRUE(server.out.valid());
    server.out.reset();
    server.pending.add(7, 4);
    EXPECT_EQ(server.next(), Next::none) << "and none goes for a connection that does not come";
}

TEST(AcceptorTest, ConnectionsWithoutADescriptorAreTurnedAwayOneByOne) {
    Server server;
    std::vector<Fd> wait;
    for (int i = 0; i < 4; ++i) wait.push_back(server.client());
    const NoDescriptors none;
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(server.next(), Next::turn_away);
        server.out.reset();
    }
    EXPECT_EQ(server.next(), Next::none);
    EXPECT_FALSE(server.is_readable());
    EXPECT_FALSE(server.acceptor.rests());
}

TEST(AcceptorTest, ADescriptorThatIsClosedIsKeptForTheNextConnection) {
    Server server;
    const Fd first = server.client(), second = server.client();
    const NoDescriptors none;
    ASSERT_EQ(server.next(), Next::turn_away);
    server.out.reset();
    server.acceptor.keep_reserve();
    EXPECT_FALSE(Fd(::dup(0)).valid());
    EXPECT_EQ(server.next(), Next::turn_away);
}

TEST(AcceptorTest, AConnectionThatCannotBeAcceptedKeepsNoLoopBusy) {
    Server server;
    const Fd first = server.client(), second = server.client();
    Fd kept;
    {
        const NoDescriptors none;
        ASSERT_EQ(server.next(), Next::turn_away);
        kept = std::move(server.out);  // its closing waits
        EXPECT_EQ(server.next(100), Next::none);
        ASSERT_TRUE(server.acceptor.rests());
        EXPECT_FALSE(server.is_readable());
        server.acceptor.look(server.acceptor.rests_until() - 1);
        EXPECT_FALSE(server.is_readable());
        server.acceptor.look(server.acceptor.rests_until());
        EXPECT_FALSE(server.acceptor.rests());
        EXPECT_TRUE(server.is_readable()) << "the second one still waits";
        EXPECT_EQ(server.next(), Next::none);
        EXPECT_FALSE(server.is_readable());
        EXPECT_TRUE(server.acceptor.may_tell(200));
        EXPECT_FALSE(server.acceptor.may_tell(200));
    }
    EXPECT_EQ(server.next(), Next::none) << "it rests";
    server.acceptor.look(server.acceptor.rests_until());
    EXPECT_EQ(server.next(), Next::connection);
}

}  // namespace
}  // namespace viaduct::fair
