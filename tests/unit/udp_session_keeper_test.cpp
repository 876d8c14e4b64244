// SPDX-License-Identifier: BSD-2-Clause
// A program's session at viaduct-udpd, which here is played by the thread that uses the session: a call that waited for
// the daemon would never return.
#include "providers/udp/session_keeper.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "providers/udp/address.hpp"
#include "providers/wire/encapsulation.hpp"
#include "tests/eventually.hpp"
#include "tests/moved_clock.hpp"

namespace viaduct::udp {
namespace {

using tests::eventually;

// An address of this process alone.
const NicAddress kNic = wire::udp_address(0x7F700000u | (static_cast<uint32_t>(::getpid()) & 0x0FFFFF), 4792);
constexpr uint64_t kToken = 99;
constexpr int64_t kLater = 600'000'000'000;  // longer than anything is put off
constexpr uint32_t kMany = 3000;             // messages, more than the socket holds

// Starts the keeper's threads.
class ThreadAgent final : public UserAgent {
public:
    ~ThreadAgent() {
        EXPECT_TRUE(eventually("no thread runs", [&] { return running() == 0; }));
    }
    Status agent_start(const Mail&, uint32_t*, Deadline) override { return Status::broken; }
    Status agent_await(uint32_t, Deadline, Mail*) override { return Status::broken; }
    void agent_abandon(uint32_t, LateAnswer, uint64_t) override {}
    Status watch(int, void (*)(void*), void*, uint32_t*) override { return Status::broken; }
    void unwatch(uint32_t) override {}
    Status spawn(const char*, void (*run)(void*), void* argument) override {
        if (refuses) return Status::out_of_resources;
        auto count = running_;
        ++*count;
        std::thread([=] {
            run(argument);
            --*count;
        }).detach();
        return Status::ok;
    }
    bool crowded() override { return false; }
    void nic_failed(uint64_t) override {}
    void explain(const char*, const char*) override {}

    int running() const { return running_->load(); }
    bool refuses = false;

private:
    const std::shared_ptr<std::atomic<int>> running_ = std::make_shared<std::atomic<int>>(0);
};

class SessionKeeperTest : public testing::Test {
protected:
    SessionKeeperTest() : listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        const std::string name = daemon_address(text_of(kNic), ::geteuid());
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(at.sun_path, name.data(), name.size());
        at.sun_path[0] = '\0';
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
        EXPECT_EQ(::listen(listener_.get(), 8), 0);
    }

    static FilterMessage filter(uint32_t number) {
        FilterMessage m;
        m.number = number;
        return m;
    }
    void add(uint32_t number) {
        keeper_->add(filter(number), now_);
        keeper_->look_after(agent_, now_);
    }
    // The daemon takes a program, which says hello.
    void take() {
        ASSERT_TRUE(eventually("the program connects", [&] {
            session_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            return session_.valid();
        }));
        Hello hello;
        ASSERT_TRUE(eventually("the program says hello", [&] {
            return ::recv(session_.get(), &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello);
        }));
        EXPECT_EQ(hello.token, kToken);
    }
    // The daemon answers it.
    void answer(Status status, uint32_t flaws = 0) {
        Welcome w;
        w.status = static_cast<int32_t>(status);
        w.flaws = flaws;
        std::strcpy(w.why, "no place");
        EXPECT_EQ(::send(session_.get(), &w, sizeof w, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof w));
    }
    void welcome(Status status = Status::ok) {
        take();
        answer(status);
    }
    // The next message of the program; what = 99: there is none.
    FilterMessage next() {
        FilterMessage m;
        if (::recv(session_.get(), &m, sizeof m, 0) != static_cast<ssize_t>(sizeof m)) m.what = 99;
        return m;
    }
    void expect_next(uint32_t what, uint32_t number) {
        FilterMessage m;
        EXPECT_TRUE(eventually("a message comes", [&] { return (m = next()).what != 99; }));
        EXPECT_EQ(m.what, what);
        EXPECT_EQ(m.number, number);
    }
    void settle() {
        EXPECT_TRUE(eventually("the thread has ended", [&] { return agent_.running() == 0; }));
    }

    int64_t now_ = tests::MovedClock().now();  // stands still: what the thread puts off is not due before a move
    const Fd listener_;
    Fd session_;
    ThreadAgent agent_;
    std::unique_ptr<SessionKeeper> keeper_ =
        std::make_unique<SessionKeeper>(SessionRequest{kNic, wire::udp_address(0x7F000001, 40000), kToken});
};

TEST_F(SessionKeeperTest, FiltersWaitForADaemonThatDoesNotAnswer) {
    add(1);
    add(2);
    keeper_->remove(1, true);
    EXPECT_FALSE(keeper_->is_refused(2));
    welcome();
    expect_next(FilterMessage::add, 2);
    settle();
    EXPECT_EQ(next().what, 99u);
    keeper_->remove(2, true);
    expect_next(FilterMessage::remove_matches, 2);
}

// The limits that it reports are worse than any that a process has.
TEST_F(SessionKeeperTest, ADaemonOfWorseLimitsIsAskedToEnd) {
    for (const Status status : {Status::ok, Status::out_of_resources}) {
        keeper_ = std::make_unique<SessionKeeper>(SessionRequest{kNic, wire::udp_address(0x7F000001, 40000), kToken});
        add(1);
        take();
        answer(status, 0x7F);
        expect_next(FilterMessage::end, 0);
        session_.reset();
        welcome();
        expect_next(FilterMessage::add, 1);
        settle();
        EXPECT_FALSE(keeper_->is_refused(1));
    }
}

TEST_F(SessionKeeperTest, ASessionIsOpenedForConnectionsToo) {
    keeper_->look_after(agent_, now_);
    EXPECT_EQ(agent_.running(), 0) << "neither filter nor connection";
    keeper_->want();
    keeper_->look_after(agent_, now_);
    welcome();
    settle();
    EXPECT_EQ(next().what, 99u);
}

TEST_F(SessionKeeperTest, FiltersComeAgainToTheNextDaemon) {
    add(1);
    welcome();
    expect_next(FilterMessage::add, 1);
    settle();
    add(2);
    add(3);
    expect_next(FilterMessage::add, 2);
    expect_next(FilterMessage::add, 3);
    session_.reset();
    keeper_->remove(2, false);
    keeper_->look_after(agent_, now_);
    welcome();
    expect_next(FilterMessage::add, 1);
    expect_next(FilterMessage::add, 3);
    settle();
    EXPECT_EQ(next().what, 99u);
}

TEST_F(SessionKeeperTest, ANewFilterIsRefusedAndOneThatWaitsGoesOn) {
    add(1);
    welcome();
    expect_next(FilterMessage::add, 1);
    settle();
    session_.reset();
    add(2);
    welcome(Status::out_of_resources);
    EXPECT_TRUE(eventually("the new one is refused", [&] { return keeper_->is_refused(2); }));
    EXPECT_FALSE(keeper_->is_refused(1));
    settle();
    keeper_->look_after(agent_, now_);
    EXPECT_EQ(agent_.running(), 0) << "after a failure it asks later";
    keeper_->remove(2, false);
    session_.reset();
    now_ += kLater;
    keeper_->look_after(agent_, now_);
    welcome();
    expect_next(FilterMessage::add, 1);
    settle();
    EXPECT_EQ(next().what, 99u);
}

TEST_F(SessionKeeperTest, WithoutAThreadAFilterIsRefused) {
    agent_.refuses = true;
    add(1);
    EXPECT_TRUE(keeper_->is_refused(1));
    agent_.refuses = false;
    keeper_->remove(1, false);
}

// Its peers see the end of a program at once even if its thread has got no processor before.
TEST_F(SessionKeeperTest, TheDaemonHasTheGreetingThoughNoThreadStarts) {
    agent_.refuses = true;
    keeper_->want();
    keeper_->look_after(agent_, now_);
    take();
    answer(Status::ok);
    agent_.refuses = false;
    now_ += kLater;
    add(1);
    expect_next(FilterMessage::add, 1);
    settle();
}

TEST_F(SessionKeeperTest, ADaemonThatEndsWithoutAnAnswerIsNotTheLast) {
    agent_.refuses = true;
    keeper_->want();
    keeper_->look_after(agent_, now_);
    take();
    session_.reset();
    agent_.refuses = false;
    now_ += kLater;
    add(1);
    welcome();
    expect_next(FilterMessage::add, 1);
    settle();
}

TEST_F(SessionKeeperTest, ADaemonThatReadsNothingGetsAllWhenItReads) {
    add(1);
    welcome();
    expect_next(FilterMessage::add, 1);
    for (uint32_t number = 2; number <= kMany; ++number) add(number);
    keeper_->remove(1, false);
    bool removed = false;
    for (uint32_t number = 2; number <= kMany || !removed;) {
        FilterMessage m;
        ASSERT_TRUE(eventually("a message comes", [&] { return (m = next()).what != 99; }));
        if (m.what == FilterMessage::remove) {
            EXPECT_FALSE(removed);
            EXPECT_EQ(m.number, 1u);
            removed = true;
            continue;
        }
        ASSERT_EQ(m.number, number++);
    }
    settle();
}

TEST_F(SessionKeeperTest, TheThreadEndsWithTheKeeper) {
    add(1);
    take();
    EXPECT_EQ(agent_.running(), 1);
    keeper_.reset();
    Welcome w;
    (void)::send(session_.get(), &w, sizeof w, MSG_NOSIGNAL);  // the thread may have ended
    settle();
    EXPECT_EQ(next().what, 99u) << "no filter comes to a daemon that answers late";
}

}  // namespace
}  // namespace viaduct::udp
