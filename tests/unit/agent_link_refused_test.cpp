// SPDX-License-Identifier: BSD-2-Clause
// AgentLink where something else is at the agent's address, or an agent that takes no client.
#include "core/agent/link.hpp"

#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <functional>
#include <thread>

#include "agent_link_testing.hpp"
#include "core/agent/link_state.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

// Another user who listens at an address and serves no client.
class Impostor {
public:
    explicit Impostor(const std::string& address, int type = SOCK_SEQPACKET) {
        pid_ = ::fork();
        if (pid_ != 0) return;
        if (::setuid(65534) != 0) ::_exit(1);
        sockaddr_un a;
        const socklen_t n = fill(address, &a);
        const int fd = ::socket(AF_UNIX, type, 0);
        ::umask(0);
        if (::bind(fd, reinterpret_cast<sockaddr*>(&a), n) != 0) ::_exit(2);
        if (type == SOCK_SEQPACKET && ::listen(fd, 8) != 0) ::_exit(3);
        for (;;) ::pause();
    }
    ~Impostor() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    bool there(const std::string& address) const {
        return eventually("the impostor listens", [&] { return connect_to(address).valid(); }).holds;
    }

private:
    pid_t pid_ = -1;
};

// Whether a socket of the system has that name.
bool is_bound(const std::string& name) {
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);)
        if (line.ends_with(" " + name)) return true;
    return false;
}

TEST(AgentLinkTest, RefusesAPathOfAnotherUserAndSaysWhy) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    const std::string path = "/tmp/viaduct-unit-impostor-" + std::to_string(::getpid());
    const Impostor impostor(path);
    ASSERT_TRUE(impostor.there(path));
    place.set("VIADUCT_AGENT", path);
    AgentLink link;
    EXPECT_EQ(link.connect(), Status::denied);
    EXPECT_NE(link.last_error().find("65534"), std::string::npos) << link.last_error();
    ::unlink(path.c_str());
}

// Every user can take an abstract name. The agent serves in a folder of its user's then, and all processes find it
// there.
TEST(AgentLinkTest, ANameHeldByAnotherUserKeepsNoClientOut) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    const Impostor impostor(place.address);
    ASSERT_TRUE(impostor.there(place.address));
    const std::string starting_name = place.address + ".starting";
    const Impostor starting(starting_name, SOCK_DGRAM);
    ASSERT_TRUE(eventually("the name of the starting one is taken", [&] { return is_bound(starting_name); }));
    AgentLink first, second;
    tests::RunningTime time(kAnyProcess);
    ASSERT_EQ(first.connect(), Status::ok) << first.last_error();
    EXPECT_LT(time.running_ns(), 4000 * kMs);
    ASSERT_EQ(second.connect(), Status::ok) << second.last_error();
    EXPECT_EQ(first.welcome().agent_pid, second.welcome().agent_pid);
    Mail answer;
    EXPECT_EQ(first.call(Mail(Type::kShutdown), &answer, in_ms(5000)), Status::ok);
}

// Something at the agent's address that treats each connection in one way.
class FakeServer {
public:
    FakeServer(const std::string& address, std::function<void(int)> treat) : treat_(std::move(treat)) {
        sockaddr_un a;
        const socklen_t n = fill(address, &a);
        listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
        EXPECT_EQ(::listen(listener_.get(), 128), 0);
        thread_ = std::thread([this] {
            for (;;) {
                Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                if (!client.valid()) return;
                treat_(client.get());
                if (keep) kept_.push_back(std::move(client));
            }
        });
    }
    ~FakeServer() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        thread_.join();
    }
    std::atomic<bool> keep = false;

private:
    std::function<void(int)> treat_;
    Fd listener_;
    std::vector<Fd> kept_;
    std::thread thread_;
};

// A deadline is kept to within what a busy machine adds; an attempt that goes on takes seven seconds.
constexpr int64_t kInTimeNs = 3500 * kMs;

// The time that an attempt with this deadline may take: TimeLimit::agent_connect_least at least, agent_connect at most,
// and what a busy machine adds.
int64_t limit_of(Deadline wanted) { return remaining_ns(link_detail::connect_deadline(wanted)) + 3000 * kMs; }

// Where the machine gives the closing thread no time until the deadline, the last of the connections was not closed,
// and the answer is timeout: once more.
Status give_up(AgentLink& link, int64_t ms, int most_turns) {
    Status answer = Status::timeout;
    for (int turn = 0; turn < most_turns && answer == Status::timeout; ++turn) {
        const Deadline deadline = ms < 0 ? kNever : in_ms(ms);
        const int64_t limit = limit_of(deadline);
        tests::RunningTime time;
        answer = link.connect(deadline);
        EXPECT_LT(time.running_ns(), limit) << ms;
    }
    return answer;
}

TEST(AgentLinkTest, AnAgentThatClosesEveryConnectionIsGivenUpByTheDeadline) {
    Place place;
    std::atomic<int> calls = 0;
    const FakeServer closing(place.address, [&calls](int) { ++calls; });
    AgentLink link;
    for (const int64_t ms : {0, 100, 1500}) EXPECT_EQ(give_up(link, ms, 10), Status::broken) << ms;
    const int calls_before = calls;
    EXPECT_EQ(give_up(link, -1, 4), Status::broken);
    // In seven seconds there are 75 on a quiet machine, and 15 if each pause were twice as long as the one before.
    EXPECT_GT(calls - calls_before, 25) << "many attempts, the pause between them has an end";
    EXPECT_NE(link.last_error().find("closes"), std::string::npos) << link.last_error();
}

TEST(AgentLinkTest, AThreadThatWaitsForAnothersConnectingKeepsItsOwnDeadline) {
    Place place;
    FakeServer silent(place.address, [](int) {});
    silent.keep = true;
    AgentLink link;
    tests::SleepMark connects;
    std::thread waiting([&] {
        connects.set();
        EXPECT_EQ(link.connect(), Status::timeout);
    });
    EXPECT_TRUE(eventually("the other thread waits for the agent", [&] { return connects.has_slept(); }));
    uint32_t ticket = 0;
    Mail answer;
    tests::RunningTime of_start;
    EXPECT_EQ(link.start(wait_request(1, "d"), &ticket, in_ms(600)), Status::timeout);
    EXPECT_LT(of_start.running_ns(), kInTimeNs);
    tests::RunningTime of_call;
    EXPECT_EQ(link.call(wait_request(1, "d"), &answer, in_ms(600)), Status::timeout);
    EXPECT_LT(of_call.running_ns(), kInTimeNs);
    tests::RunningTime of_poll;
    EXPECT_EQ(link.start(wait_request(1, "d"), &ticket, kOnlyConnected), Status::broken);
    EXPECT_LT(of_poll.running_ns(), 400 * kMs) << "looks for no agent";
    waiting.join();
}

TEST(AgentLinkTest, WhatAFullAgentSaysBeforeItClosesIsRead) {
    Place place;
    const FakeServer full(place.address, [](int client) {
        kagent::Error e;
        e.status = static_cast<int32_t>(Status::out_of_resources);
        std::strcpy(e.text, "it has no descriptors left");
        (void)send_mail(client, Mail::of(Type::kError, e, kagent::kHelloTicket));
    });
    AgentLink link;
    for (int i = 0; i < 50; ++i) {  // whether the hello is there before it closes, or not
        ASSERT_EQ(link.connect(), Status::out_of_resources) << link.last_error();
        EXPECT_NE(link.last_error().find("no descriptors left"), std::string::npos) << link.last_error();
    }
}

// Two agents, one after the other, refuse this process and report limits that are worse than any that a process has.
TEST(AgentLinkTest, FullAgentsOfWorseLimitsAreAskedToEndUntilOneServes) {
    Place place;
    std::atomic<int> calls = 0;
    std::atomic<int> requests_to_end = 0;
    const FakeServer full(place.address, [&](int client) {
        const auto take = [client](Mail* m) {
            return eventually("a request comes", [&] { return receive_mail(client, m) == Status::ok; }).holds;
        };
        Mail mail;
        if (!take(&mail)) return;
        if (++calls > 2) {
            kagent::Welcome w;
            w.version = kagent::kVersionMax;
            (void)send_mail(client, Mail::of(Type::kWelcome, w, mail.header.ticket));
            return;
        }
        kagent::Error e;
        e.status = static_cast<int32_t>(Status::out_of_resources);
        e.flaws = 0x7F;
        std::strcpy(e.text, "it has no descriptors left");
        if (send_mail(client, Mail::of(Type::kError, e, mail.header.ticket)) != Status::ok || !take(&mail)) return;
        if (mail.type() == Type::kShutdown) ++requests_to_end;
        (void)send_mail(client, Mail(Type::kDone, mail.header.ticket));
    });
    AgentLink link;
    EXPECT_EQ(link.connect(), Status::ok) << link.last_error();
    EXPECT_EQ(requests_to_end.load(), 2);
    EXPECT_EQ(calls.load(), 3);
}

TEST(AgentLinkTest, WhatAnAgentAnsweredBeforeItEndedIsRead) {
    Place place;
    std::atomic<bool> both_are_sent = false;
    const FakeServer answers_one(place.address, [&](int client) {
        const auto take = [client](Mail* m) {
            return eventually("a request comes", [&] { return receive_mail(client, m) == Status::ok; }).holds;
        };
        Mail mail;
        kagent::Welcome w;
        w.version = kagent::kVersionMax;
        if (!take(&mail) || send_mail(client, Mail::of(Type::kWelcome, w, mail.header.ticket)) != Status::ok) return;
        if (!take(&mail) || !eventually("both requests are sent", [&] { return both_are_sent.load(); })) return;
        (void)send_mail(client, Mail(Type::kDone, mail.header.ticket));
    });  // and closes with the other one unread
    AgentLink link;
    uint32_t first = 0, second = 0;
    ASSERT_EQ(link.start(wait_request(1, "a"), &first), Status::ok) << link.last_error();
    ASSERT_EQ(link.start(wait_request(1, "b"), &second), Status::ok) << link.last_error();
    pollfd end{link.socket(), 0, 0};
    both_are_sent = true;
    const auto has_ended = [&] { return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0; };
    ASSERT_TRUE(eventually("the agent's end is closed", has_ended));
    Mail answer;
    uint32_t third = 0;
    EXPECT_EQ(link.start(wait_request(1, "c"), &third, kOnlyConnected), Status::broken);
    EXPECT_EQ(link.await(first, in_ms(5000), &answer), Status::ok);
    EXPECT_EQ(answer.type(), Type::kDone);
    EXPECT_EQ(link.await(second, in_ms(5000), &answer), Status::broken);
}

}  // namespace
}  // namespace viaduct
