// SPDX-License-Identifier: BSD-2-Clause
// A server without a descriptor left: who goes, who is turned away, and that no connection keeps its loop busy.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "core/fair/acceptor.hpp"
#include "unix_listener.hpp"

namespace viaduct::fair {
namespace {

using Next = Acceptor::Next;

// No descriptor more than there are now may be opened in its scope; one that is closed may be opened again.
class NoDescriptors {
public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const Fd first_free(::dup(0));
        rlimit now = before_;
        now.rlim_cur = static_cast<rlim_t>(first_free.get());
        ::setrlimit(RLIMIT_NOFILE, &now);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

class AcceptorTest : public testing::Test {
protected:
    AcceptorTest()
        : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          acceptor_(listener_.listening(16), epoll_.get(), epoll_data_t{this}) {}

    Fd client() const { return listener_.client(); }
    Next next(int64_t now = 1) { return acceptor_.next(pending_, now, &out_, &oldest_); }
    bool is_readable() const {
        epoll_event e{};
        return ::epoll_wait(epoll_.get(), &e, 1, 0) == 1;
    }

    tests::UnixListener listener_;
    const Fd epoll_;
    Acceptor acceptor_;
    PendingConnections pending_{32, 128};
    Fd out_;
    uint64_t oldest_ = 0;
};

TEST_F(AcceptorTest, ConnectionsAreAcceptedWhileThereAreDescriptors) {
    EXPECT_FALSE(is_readable());
    EXPECT_EQ(next(), Next::none);
    const Fd one = client(), two = client();
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(next(), Next::connection);
    const Fd first = std::move(out_);
    EXPECT_EQ(next(), Next::connection);
    EXPECT_EQ(next(), Next::none);
    EXPECT_FALSE(acceptor_.rests());
}

TEST_F(AcceptorTest, WithoutADescriptorTheOldestSilentOneOfTheLargestUserGoes) {
    const Fd waits = client();
    pending_.add(8, 1);
    pending_.add(7, 2);
    pending_.add(7, 3);
    const NoDescriptors none;
    EXPECT_EQ(next(), Next::evict);
    EXPECT_EQ(oldest_, 2u);
    EXPECT_EQ(next(), Next::evict) << "until it has gone";
    pending_.remove(7, 2);
    pending_.remove(7, 3);
    pending_.remove(8, 1);
    EXPECT_EQ(next(), Next::turn_away) << "there is none that could go";
    EXPECT_TRUE(out_.valid());
    out_.reset();
    pending_.add(7, 4);
    EXPECT_EQ(next(), Next::none) << "and none goes for a connection that does not come";
}

TEST_F(AcceptorTest, ConnectionsWithoutADescriptorAreTurnedAwayOneByOne) {
    std::vector<Fd> wait;
    for (int i = 0; i < 4; ++i) wait.push_back(client());
    const NoDescriptors none;
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(next(), Next::turn_away);
        out_.reset();
    }
    EXPECT_EQ(next(), Next::none);
    EXPECT_FALSE(is_readable());
    EXPECT_FALSE(acceptor_.rests());
}

TEST_F(AcceptorTest, AConnectionThatCannotBeAcceptedKeepsNoLoopBusy) {
    const Fd first = client(), second = client();
    Fd kept;
    {
        const NoDescriptors none;
        ASSERT_EQ(next(), Next::turn_away);
        kept = std::move(out_);  // its closing waits
        EXPECT_EQ(next(100), Next::none);
        ASSERT_TRUE(acceptor_.rests());
        EXPECT_FALSE(is_readable());
        acceptor_.look(acceptor_.rests_until() - 1);
        EXPECT_FALSE(is_readable());
        acceptor_.look(acceptor_.rests_until());
        EXPECT_FALSE(acceptor_.rests());
        EXPECT_TRUE(is_readable()) << "the second one still waits";
        EXPECT_EQ(next(), Next::none);
        EXPECT_FALSE(is_readable());
        EXPECT_TRUE(acceptor_.may_tell(200));
        EXPECT_FALSE(acceptor_.may_tell(200));
    }
    EXPECT_EQ(next(), Next::none) << "it rests";
    acceptor_.look(acceptor_.rests_until());
    EXPECT_EQ(next(), Next::connection);
}

}  // namespace
}  // namespace viaduct::fair
