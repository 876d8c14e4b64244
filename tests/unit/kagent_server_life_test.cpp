// SPDX-License-Identifier: BSD-2-Clause
// vipkad as a process: its address, when it comes and when it goes, and which users it serves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <csignal>

#include "fake_provider/fake_control.hpp"
#include "vipkad_testing.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

TEST_F(VipkadTest, SecondAgentAtTheSameAddressGoesQuietly) {
    Daemon second(place.address);
    EXPECT_TRUE(second.ends());
    EXPECT_EQ(second.status, 0);
    expect_well();
}

TEST_F(VipkadTest, TerminationIsAnnounced) {
    const Fd fd = join();
    ::kill(daemon.pid, SIGTERM);
    Mail m;
    ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
    EXPECT_EQ(m.type(), Type::kLeaving);
    EXPECT_EQ(m.header.ticket, 0u);
    EXPECT_TRUE(is_closed(fd.get()));
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
}

TEST(VipkadLifeTest, LeavesAfterTheLastClientButNotBefore) {
    Place place;
    Daemon daemon(place.address, {"--linger-ms", "150"});
    ASSERT_TRUE(daemon.up);
    Fd client = connect_to(place.address);
    ASSERT_EQ(hello(client.get()).type(), Type::kWelcome);
    const Fd tool = connect_to(place.address);
    ASSERT_EQ(hello(tool.get(), kagent::kHelloTool).type(), Type::kWelcome);
    EXPECT_TRUE(another_agent_has_left(place, "150"));
    EXPECT_EQ(daemon.wait_now(), -1) << "a client is there";
    const tests::RunningTime time;
    client.reset();
    EXPECT_TRUE(daemon.ends()) << "a tool does not keep it";
    EXPECT_GE(time.wall_ns(), 140 * kMs);
    EXPECT_EQ(daemon.status, 0);
}

TEST(VipkadLifeTest, ClientsThatComeWhileItLeavesAreServedByItOrTheNext) {
    Place place("0");  // leaves as soon as it is alone: every call races with its going
    for (int i = 0; i < 60; ++i) {
        AgentLink link;
        Mail answer;
        for (int yields = i % 20 * 200; yields > 0; --yields) ::sched_yield();  // different moments of its going
        ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, now_ns() + 8000 * kMs), Status::ok)
            << i << ": " << link.last_error();
    }
}

TEST(VipkadLifeTest, PathOfAKilledAgentIsTakenOver) {
    Place place;
    const std::string path = "/tmp/viaduct-unit-" + std::to_string(::getpid()) + ".sock";
    {
        Daemon first(path, {"--linger-ms", "-1"});
        ASSERT_TRUE(first.up);
        first.end(SIGKILL);
    }
    ASSERT_EQ(::access(path.c_str(), F_OK), 0) << "left behind";
    Daemon second(path, {"--linger-ms", "-1"});
    ASSERT_TRUE(second.up);
    Daemon third(path);
    EXPECT_TRUE(third.ends());
    EXPECT_TRUE(connect_to(path).valid()) << "the living one's path is not taken";
    second.end(SIGTERM);
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "an orderly end leaves nothing";
}

TEST(VipkadLifeTest, FileAtItsPathIsNotRemoved) {
    Place place;
    const std::string path = "/tmp/viaduct-unit-file-" + std::to_string(::getpid());
    const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    Daemon daemon(path);
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    ::unlink(path.c_str());
}

TEST(VipkadLifeTest, TakesTheSocketOfAServiceManagerAndAnnouncesItself) {
    Place place;
    sockaddr_un a;
    const std::string name = place.address + "-activated", notify = place.address + "-notify";
    socklen_t n = fill(name, &a);
    const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    const Fd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    n = fill(notify, &a);
    ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
    const pid_t agent = ::fork();
    if (agent == 0) {
        const int handed = ::fcntl(listener.get(), F_DUPFD, 100);
        ::dup2(handed, 3);
        ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
        ::setenv("LISTEN_FDS", "1", 1);
        ::setenv("NOTIFY_SOCKET", notify.c_str(), 1);
        ::execl(VIADUCT_TEST_VIPKAD, "vipkad", "--linger-ms", "100", nullptr);
        ::_exit(126);
    }
    const timeval limit{10, 0};
    ::setsockopt(manager.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto heard = [&] {
        char text[64] = {};
        return ::recv(manager.get(), text, sizeof text - 1, 0) > 0 ? std::string(text) : std::string();
    };
    EXPECT_EQ(heard(), "READY=1");
    {
        const Fd client = connect_to(name);
        const Mail m = hello(client.get());
        kagent::Welcome w;
        ASSERT_TRUE(m.get(&w));
        EXPECT_EQ(static_cast<pid_t>(w.agent_pid), agent);
    }
    EXPECT_EQ(heard(), "STOPPING=1");
    int status = -1;
    ::waitpid(agent, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(connect_to(name).valid()) << "the manager listens on";
}

TEST(VipkadLifeTest, BrokenProviderIsARejectionWithACure) {
    Place place;
    Daemon daemon(place.address);
    ASSERT_TRUE(daemon.up);
    const Fd fd = connect_to(place.address);
    hello(fd.get());
    ASSERT_EQ(send_mail(fd.get(), Mail(Type::kListNics, 2)), Status::ok);
    bool found = false;
    for (uint32_t more = 1; more != 0;) {
        Mail m;
        ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
        kagent::NicEntry nic;
        kagent::RejectionEntry r;
        if (m.get(&nic)) {
            more = nic.more;
        } else {
            ASSERT_TRUE(m.get(&r));
            more = r.more;
            if (text_of(r.provider) != "stale") continue;
            found = true;
            EXPECT_FALSE(text_of(r.reason).empty());
            EXPECT_FALSE(text_of(r.cure).empty());
        }
    }
    EXPECT_TRUE(found);
}

// A client of another user: answers 'w' welcome, 'c' closed, '-' cannot connect; then what opening and
// meeting the server gave.
std::string as_other_user(const std::string& address) {
    int result[2];
    if (::pipe(result) != 0) return "?";
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        std::string said;
        const Fd fd = connect_to(address);
        if (!fd.valid()) {
            said = "-";
        } else {
            said = hello(fd.get()).type() == Type::kWelcome ? "w" : "c";
        }
        if (said == "w") {
            kagent::OpenNic o;
            std::strcpy(o.device, "fake0");
            o.context_id = 900;
            Mail m;
            if (send_mail(fd.get(), Mail::of(Type::kOpenNic, o, 2)) == Status::ok) (void)receive_mail(fd.get(), &m);
            said += m.type() == Type::kOpened ? "o" : "x";
            kagent::ConnRequest r;
            r.context_id = 900;
            r.remote.host = fake::nic("fake", 0).address;
            r.remote.discriminator_len = 1;
            r.timeout_ms = 500;
            if (send_mail(fd.get(), Mail::of(Type::kConnRequest, r, 3)) == Status::ok) (void)receive_mail(fd.get(), &m);
            said += status_of(m) == Status::no_match ? "n" : "m";
            if (send_mail(fd.get(), Mail(Type::kShutdown, 4)) == Status::ok) (void)receive_mail(fd.get(), &m);
            said += status_of(m) == Status::denied ? "d" : "!";
        }
        (void)!::write(result[1], said.data(), said.size());
        ::_exit(0);
    }
    ::close(result[1]);
    char text[16] = {};
    (void)!::read(result[0], text, sizeof text - 1);
    ::close(result[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

TEST(VipkadUsersTest, AgentOfOneUserServesNoOther) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    Daemon daemon(place.address);
    ASSERT_TRUE(daemon.up);
    EXPECT_EQ(as_other_user(place.address), "c");
}

TEST(VipkadUsersTest, ServiceServesEveryUserButKeepsThemApart) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    const std::string path = "/tmp/viaduct-unit-users-" + std::to_string(::getpid()) + ".sock";
    Daemon daemon(path);
    ASSERT_TRUE(daemon.up);
    const Fd server = connect_to(path);
    ASSERT_EQ(hello(server.get()).type(), Type::kWelcome);
    kagent::OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = 901;
    Mail m;
    ASSERT_EQ(send_mail(server.get(), Mail::of(Type::kOpenNic, o, 2)), Status::ok);
    ASSERT_EQ(receive_mail(server.get(), &m), Status::ok);
    ASSERT_EQ(m.type(), Type::kOpened);
    kagent::ConnWait w;
    w.context_id = 901;
    w.local.discriminator_len = 1;
    ASSERT_EQ(send_mail(server.get(), Mail::of(Type::kConnWait, w, 3)), Status::ok);
    EXPECT_EQ(as_other_user(path), "wond") << "welcome, opened, no match, shutdown denied";
    daemon.end(SIGTERM);
}

}  // namespace
}  // namespace viaduct
