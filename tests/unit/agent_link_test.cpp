// SPDX-License-Identifier: BSD-2-Clause
// AgentLink with a real vipkad: found, started unseen, shared by threads, lost and met again.
#include "core/agent/link.hpp"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>

#include "agent_testing.hpp"
#include "core/agent/start_agent.hpp"
#include "tests/slowness.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;
using kagent::Type;

Deadline in_ms(int64_t ms) { return now_ns() + ms * kMs; }

Mail open_request(uint64_t id) {
    kagent::OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = id;
    return Mail::of(Type::kOpenNic, o);
}

Mail wait_request(uint64_t context, const std::string& d) {
    kagent::ConnWait w;
    w.context_id = context;
    w.local.discriminator_len = static_cast<uint16_t>(d.size());
    std::memcpy(w.local.discriminator, d.data(), d.size());
    return Mail::of(Type::kConnWait, w);
}

Mail connect_request(uint64_t context, const NicAddress& host, const std::string& d,
                     uint32_t timeout_ms = 0xFFFFFFFF) {
    kagent::ConnRequest r;
    r.context_id = context;
    r.remote.host = host;
    r.remote.discriminator_len = static_cast<uint16_t>(d.size());
    std::memcpy(r.remote.discriminator, d.data(), d.size());
    r.timeout_ms = timeout_ms;
    return Mail::of(Type::kConnRequest, r);
}

NicAddress open_nic(AgentLink& link, uint64_t id) {
    Mail answer;
    EXPECT_EQ(link.call(open_request(id), &answer, in_ms(5000)), Status::ok) << link.last_error();
    kagent::Opened o;
    EXPECT_TRUE(answer.get(&o));
    return o.nic.address;
}

std::string stat_field(pid_t pid, const char* what) {
    std::ifstream f("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(f, line)) {
        if (line.rfind(what, 0) == 0) return line.substr(std::strlen(what));
    }
    return {};
}

TEST(AgentLinkTest, StartsTheAgentWhenNoneListens) {
    Place place;
    ASSERT_FALSE(place.listening());
    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok) << link.last_error();
    EXPECT_EQ(link.epoch(), 1u);
    EXPECT_EQ(link.welcome().version, kagent::kVersionMax);
    EXPECT_GE(link.socket(), 3);
    EXPECT_EQ(link.connect(), Status::ok);
    EXPECT_EQ(link.epoch(), 1u) << "connected already";
}

TEST(AgentLinkTest, DoesNotStartWhenToldNotTo) {
    Place place;
    LinkOptions options;
    options.start_agent = false;
    AgentLink link(options);
    EXPECT_EQ(link.connect(), Status::broken);
    EXPECT_NE(link.last_error().find(place.address), std::string::npos) << link.last_error();
    EXPECT_FALSE(place.listening());
}

TEST(AgentLinkTest, SaysWhatWasTriedWhenThereIsNoAgent) {
    Place place;
    place.set("VIADUCT_VIPKAD", "/nonexistent/vipkad");
    AgentLink link;
    const int64_t begun = now_ns();
    EXPECT_EQ(link.connect(), Status::broken);
    const int64_t took = now_ns() - begun;
    EXPECT_LT(took, tests::slowed(1000 * kMs, took)) << "nothing to wait for";
    EXPECT_NE(link.last_error().find("/nonexistent/vipkad"), std::string::npos) << link.last_error();
}

TEST(AgentLinkTest, NeverStartsAnAgentForAPath) {
    Place place;
    place.set("VIADUCT_AGENT", "/tmp/viaduct-unit-no-such-socket");
    AgentLink link;
    EXPECT_EQ(link.connect(), Status::broken);
    EXPECT_NE(::access("/tmp/viaduct-unit-no-such-socket", F_OK), 0);
}

// A vipkad that notes each of its starts, and what it does before it is one.
class SlowVipkad {
public:
    SlowVipkad(Place& place, const std::string& first) {
        EXPECT_NE(::mkdtemp(folder_), nullptr);
        std::ofstream(script()) << "#!/bin/sh\necho $$ >>" << starts() << "\n"
                                << first << "\nexec " << VIADUCT_TEST_VIPKAD << " \"$@\"\n";
        ::chmod(script().c_str(), 0700);
        place.set("VIADUCT_VIPKAD", script().c_str());
    }
    ~SlowVipkad() { std::filesystem::remove_all(folder_); }
    size_t how_many() const {
        std::ifstream lines(starts());
        return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
    }
    std::string starts() const { return std::string(folder_) + "/starts"; }

private:
    std::string script() const { return std::string(folder_) + "/vipkad"; }
    char folder_[30] = "/tmp/viaduct-slow-XXXXXX";
};

// On a machine so slow that the agent takes 2.5 s no process makes it slower by starting many.
TEST(AgentLinkTest, ManyThatWaitForASlowAgentStartFewMore) {
    Place place;
    const SlowVipkad slow(place, "sleep 2.5");
    std::vector<std::unique_ptr<AgentLink>> links;
    std::vector<std::thread> threads;
    std::atomic<int> connected{0};
    for (int i = 0; i < 16; ++i) {
        links.push_back(std::make_unique<AgentLink>());
        threads.emplace_back([&, link = links.back().get()] { connected += link->connect() == Status::ok ? 1 : 0; });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(connected, 16);
    EXPECT_LE(slow.how_many(), 3u);
}

TEST(AgentLinkTest, AnAgentThatDiesOnItsWayIsReplacedAtOnce) {
    Place place;
    const SlowVipkad dying(place, "[ $(wc -l <$(dirname $0)/starts) -ge 3 ] || exit 1");
    AgentLink link;
    const int64_t begun = now_ns();
    EXPECT_EQ(link.connect(), Status::ok) << link.last_error();
    const int64_t took = now_ns() - begun;
    EXPECT_LT(took, tests::slowed(900 * kMs, took));
    EXPECT_EQ(dying.how_many(), 3u);
}

std::atomic<int> g_children_signalled{0};

TEST(AgentLinkTest, TheApplicationCannotSeeTheStart) {
    Place place;
    struct sigaction mine {
    }, old{};
    mine.sa_handler = [](int) { ++g_children_signalled; };
    ASSERT_EQ(::sigaction(SIGCHLD, &mine, &old), 0);
    sigset_t mask_before, mask_after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
    cpu_set_t one, all;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE; ++c) {
        if (CPU_ISSET(c, &all)) {
            CPU_SET(c, &one);
            break;
        }
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const int inherited = ::open("/dev/zero", O_RDONLY);  // on purpose without close-on-exec
    const pid_t self = ::getpid();

    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok) << link.last_error();

    ::sched_setaffinity(0, sizeof all, &all);
    const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
    EXPECT_EQ(g_children_signalled.load(), 0);
    errno = 0;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1) << "no child of any kind";
    EXPECT_EQ(errno, ECHILD);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
    EXPECT_EQ(std::memcmp(&mask_before, &mask_after, sizeof(unsigned long)), 0);
    EXPECT_EQ(::getpid(), self);
    ::sigaction(SIGCHLD, &old, nullptr);

    EXPECT_NE(std::atol(stat_field(agent, "PPid:").c_str()), self);
    EXPECT_EQ(::getsid(agent), agent);
    EXPECT_EQ(stat_field(agent, "Cpus_allowed_list:"), stat_field(self, "Cpus_allowed_list:"));
    char target[256] = {};
    const std::string fds = "/proc/" + std::to_string(agent) + "/fd/";
    for (const char* n : {"0", "1", "2"}) {
        const ssize_t len = ::readlink((fds + n).c_str(), target, sizeof target - 1);
        ASSERT_GT(len, 0);
        EXPECT_EQ(std::string(target, static_cast<size_t>(len)), "/dev/null");
    }
    for (int n = 3; n < 64; ++n) {
        const ssize_t len = ::readlink((fds + std::to_string(n)).c_str(), target, sizeof target - 1);
        if (len <= 0) continue;
        EXPECT_NE(std::string(target, static_cast<size_t>(len)), "/dev/zero");
    }
    const ssize_t len =
        ::readlink(("/proc/" + std::to_string(agent) + "/cwd").c_str(), target, sizeof target - 1);
    EXPECT_EQ(std::string(target, static_cast<size_t>(std::max<ssize_t>(len, 0))), "/");
    EXPECT_EQ(std::stoul(stat_field(agent, "SigIgn:"), nullptr, 16) & (1ul << (SIGCHLD - 1)), 0u);
    ::close(inherited);
}

TEST(AgentLinkTest, ManyProcessesThatStartAtOnceShareOneAgent) {
    Place place("2000");
    constexpr int kProcesses = 24;
    int gate[2], results[2];
    ASSERT_EQ(::pipe(gate), 0);
    ASSERT_EQ(::pipe(results), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            char c = 0;
            ::close(gate[1]);
            (void)!::read(gate[0], &c, 1);
            AgentLink link;
            const uint32_t pid = link.connect() == Status::ok ? link.welcome().agent_pid : 0;
            (void)!::write(results[1], &pid, sizeof pid);
            ::_exit(0);
        }
        children.push_back(child);
    }
    ::close(gate[0]);
    ::close(gate[1]);
    ::close(results[1]);
    std::vector<uint32_t> agents;
    uint32_t pid = 0;
    while (::read(results[0], &pid, sizeof pid) == sizeof pid) agents.push_back(pid);
    ::close(results[0]);
    for (const pid_t c : children) ::waitpid(c, nullptr, 0);
    ASSERT_EQ(agents.size(), static_cast<size_t>(kProcesses));
    for (const uint32_t a : agents) EXPECT_EQ(a, agents[0]);
    EXPECT_NE(agents[0], 0u);
}

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
        nap_ms(30'000);
        ::_exit(0);
    }
    ~Impostor() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    bool there(const std::string& address) const {
        return eventually([&] { return connect_to(address).valid(); });
    }

private:
    pid_t pid_ = -1;
};

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
    const Impostor starting(place.address + ".starting", SOCK_DGRAM);
    nap_ms(50);
    AgentLink first, second;
    const int64_t begun = now_ns();
    ASSERT_EQ(first.connect(), Status::ok) << first.last_error();
    EXPECT_LT(now_ns() - begun, 4000 * kMs);
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

TEST(AgentLinkTest, AnAgentThatClosesEveryConnectionIsGivenUpByTheDeadline) {
    Place place;
    std::atomic<int> calls = 0;
    const FakeServer closing(place.address, [&calls](int) { ++calls; });
    AgentLink link;
    for (const int64_t ms : {0, 100, 1500}) {
        // Where the machine gives the closing thread no time until the deadline, nothing has been closed: once more.
        Status answer = Status::timeout;
        for (int turn = 0; turn < 10 && answer == Status::timeout; ++turn) {
            const int64_t begun = now_ns();
            answer = link.connect(in_ms(ms));
            EXPECT_LT(now_ns() - begun, kInTimeNs) << ms;
        }
        EXPECT_EQ(answer, Status::broken) << ms;
    }
    const int64_t begun = now_ns();
    EXPECT_EQ(link.connect(), Status::broken) << "many attempts, the pause between them has an end";
    EXPECT_LT(now_ns() - begun, 10'000 * kMs);
    EXPECT_GT(calls, 60);
    EXPECT_NE(link.last_error().find("closes"), std::string::npos) << link.last_error();
}

TEST(AgentLinkTest, AThreadThatWaitsForAnothersConnectingKeepsItsOwnDeadline) {
    Place place;
    FakeServer silent(place.address, [](int) {});
    silent.keep = true;
    AgentLink link;
    std::thread waiting([&link] { EXPECT_EQ(link.connect(), Status::timeout); });
    nap_ms(100);
    uint32_t ticket = 0;
    Mail answer;
    int64_t begun = now_ns();
    EXPECT_EQ(link.start(wait_request(1, "d"), &ticket, in_ms(600)), Status::timeout);
    EXPECT_LT(now_ns() - begun, kInTimeNs);
    begun = now_ns();
    EXPECT_EQ(link.call(wait_request(1, "d"), &answer, in_ms(600)), Status::timeout);
    EXPECT_LT(now_ns() - begun, kInTimeNs);
    begun = now_ns();
    EXPECT_EQ(link.start(wait_request(1, "d"), &ticket, kOnlyConnected), Status::broken);
    EXPECT_LT(now_ns() - begun, 400 * kMs) << "looks for no agent";
    waiting.join();
}

TEST(AgentLinkTest, WhatAFullAgentSaysBeforeItClosesIsRead) {
    Place place;
    const FakeServer full(place.address, [](int client) {
        kagent::Error e;
        e.status = static_cast<int32_t>(Status::out_of_resources);
        std::strcpy(e.text, "it has no descriptors left");
        (void)!static_cast<int>(send_mail(client, Mail::of(Type::kError, e, kagent::kHelloTicket)));
    });
    AgentLink link;
    for (int i = 0; i < 50; ++i) {  // whether the hello is there before it closes, or not
        ASSERT_EQ(link.connect(), Status::out_of_resources) << link.last_error();
        EXPECT_NE(link.last_error().find("no descriptors left"), std::string::npos) << link.last_error();
    }
}

TEST(AgentLinkTest, WhatAnAgentAnsweredBeforeItEndedIsRead) {
    Place place;
    std::atomic<bool> both_are_sent = false;
    const FakeServer answers_one(place.address, [&](int client) {
        const auto take = [client](Mail* m) {
            return eventually([&] { return receive_mail(client, m) == Status::ok; });
        };
        Mail mail;
        kagent::Welcome w;
        w.version = kagent::kVersionMax;
        if (!take(&mail) || send_mail(client, Mail::of(Type::kWelcome, w, mail.header.ticket)) != Status::ok) return;
        if (!take(&mail) || !eventually([&] { return both_are_sent.load(); })) return;
        (void)!static_cast<int>(send_mail(client, Mail(Type::kDone, mail.header.ticket)));
    });  // and closes with the other one unread
    AgentLink link;
    uint32_t first = 0, second = 0;
    ASSERT_EQ(link.start(wait_request(1, "a"), &first), Status::ok) << link.last_error();
    ASSERT_EQ(link.start(wait_request(1, "b"), &second), Status::ok) << link.last_error();
    pollfd end{link.socket(), 0, 0};
    both_are_sent = true;
    ASSERT_TRUE(eventually([&] { return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0; }));
    Mail answer;
    uint32_t third = 0;
    EXPECT_EQ(link.start(wait_request(1, "c"), &third, kOnlyConnected), Status::broken);
    EXPECT_EQ(link.await(first, in_ms(5000), &answer), Status::ok);
    EXPECT_EQ(answer.type(), Type::kDone);
    EXPECT_EQ(link.await(second, in_ms(5000), &answer), Status::broken);
}

TEST(AgentLinkTest, CallersInAHurryDoNotStartAnAgentEach) {
    Place place;
    const SlowVipkad slow(place, "sleep 2.5");
    AgentLink link;
    const int64_t end = now_ns() + 20'000 * kMs;
    Status s = Status::timeout;
    while (s == Status::timeout && now_ns() < end) s = link.connect(in_ms(10));
    EXPECT_EQ(s, Status::ok) << link.last_error();
    EXPECT_LE(slow.how_many(), 4u);
}

TEST(AgentLinkTest, AwaitEndsAtItsDeadlineAndTheRequestStaysOpen) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    uint32_t ticket = 0;
    ASSERT_EQ(link.start(wait_request(1, "d"), &ticket), Status::ok);
    Mail answer;
    for (const int64_t ms : {0, 1, 7, 40}) {
        const int64_t begun = now_ns();
        EXPECT_EQ(link.await(ticket, in_ms(ms), &answer), Status::not_done);
        const int64_t took = now_ns() - begun;
        EXPECT_GE(took, ms * kMs);
        EXPECT_LT(took, tests::slowed(ms * kMs + 200 * kMs, took)) << "a loaded machine may be late, but not by much";
    }
    uint32_t request = 0;
    ASSERT_EQ(link.start(connect_request(1, own, "d"), &request), Status::ok);
    EXPECT_EQ(link.await(ticket, in_ms(5000), &answer), Status::ok);
    EXPECT_EQ(answer.type(), Type::kIncoming);
    link.abandon(request);
    EXPECT_EQ(link.await(request, in_ms(10), &answer), Status::invalid);
}

TEST(AgentLinkTest, AnAnswerToAnAbandonedRequestIsHandedToWhatUndoesIt) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    std::vector<Type> undone;
    const auto undo = [&](Mail& answer) {
        undone.push_back(answer.type());
        Mail other;  // with no lock held
        EXPECT_EQ(link.call(Mail(Type::kListNics), &other, in_ms(5000)), Status::ok);
    };
    uint32_t wait = 0, request = 0;
    Mail answer;
    // It comes later, and to a thread that waits for something else.
    ASSERT_EQ(link.start(wait_request(1, "d"), &wait), Status::ok);
    link.abandon(wait, undo);
    ASSERT_EQ(link.start(connect_request(1, own, "d"), &request), Status::ok);
    link.abandon(request);
    ASSERT_EQ(link.start(wait_request(1, "e"), &wait), Status::ok);
    EXPECT_TRUE(eventually([&] { return link.await(wait, in_ms(5), &answer), !undone.empty(); }));
    // It is here, and no thread has taken it.
    ASSERT_EQ(link.start(connect_request(1, own, "e"), &request), Status::ok);
    link.abandon(request);
    EXPECT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(5000)), Status::ok)
        << "and the other one is read";
    link.abandon(wait, undo);
    EXPECT_EQ(undone, (std::vector{Type::kIncoming, Type::kIncoming}));
}

TEST(AgentLinkTest, ThreadsThatWaitReadForEachOther) {
    Place place;
    AgentLink link;
    const NicAddress own = open_nic(link, 1);
    constexpr int kThreads = 8, kRounds = 60;
    std::atomic<int> met{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kRounds; ++i) {
                const std::string d = "t" + std::to_string(t);
                Mail answer;
                if (t % 2 == 0) {
                    uint32_t wait = 0;
                    if (link.start(wait_request(1, d), &wait) != Status::ok) return;
                    if (link.await(wait, in_ms(10'000), &answer) != Status::ok ||
                        answer.type() != Type::kIncoming)
                        return;
                    kagent::Incoming in;
                    if (!answer.get(&in)) return;
                    kagent::IncomingRef ref{1, in.incoming};
                    if (link.call(Mail::of(Type::kConnReject, ref), &answer, in_ms(10'000)) != Status::ok)
                        return;
                } else {
                    const std::string other = "t" + std::to_string(t - 1);
                    Status s = Status::no_match;
                    while (s == Status::no_match)
                        s = link.call(connect_request(1, own, other, 10'000), &answer, in_ms(12'000));
                    if (s != Status::rejected) return;
                }
                ++met;
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(met.load(), kThreads * kRounds);
}

TEST(AgentLinkTest, PumpingByAnotherThreadLosesNoWakeUp) {
    Place place;
    AgentLink link;
    open_nic(link, 1);
    std::atomic<bool> stop{false};
    std::thread pumper([&] {
        while (!stop) {
            pollfd p{link.socket(), POLLIN, 0};
            ::poll(&p, 1, 1);
            link.pump();
        }
    });
    std::vector<std::thread> callers;
    std::atomic<int> answered{0};
    for (int t = 0; t < 3; ++t) {
        callers.emplace_back([&] {
            kagent::NameText name;
            std::strcpy(name.name, "fake1");
            for (int i = 0; i < 1500; ++i) {
                Mail answer;
                if (link.call(Mail::of(Type::kResolveName, name), &answer, in_ms(5000)) == Status::ok)
                    ++answered;
            }
        });
    }
    for (auto& c : callers) c.join();
    stop = true;
    pumper.join();
    EXPECT_EQ(answered.load(), 3 * 1500);
}

TEST(AgentLinkTest, ListsArriveWhole) {
    Place place;
    AgentLink link;
    Mail answer;
    ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(5000)), Status::ok);  // leaves the rest alone
    uint32_t ticket = 0;
    ASSERT_EQ(link.start(Mail(Type::kListNics), &ticket), Status::ok);
    int entries = 0;
    for (bool more = true; more; ++entries) {
        ASSERT_EQ(link.await(ticket, in_ms(5000), &answer), Status::ok) << "after " << entries;
        kagent::NicEntry nic;
        kagent::RejectionEntry rejection;
        more = answer.get(&nic) ? nic.more != 0 : answer.get(&rejection) && rejection.more != 0;
    }
    EXPECT_GT(entries, 1) << "no list, so this shows nothing";
    EXPECT_EQ(link.await(ticket, in_ms(100), &answer), Status::invalid) << "the list is over";
}

TEST(AgentLinkTest, DeathOfTheAgentEndsEveryOpenRequestAtOnce) {
    Place place;
    AgentLink link;
    open_nic(link, 1);
    std::vector<std::thread> waiters;
    std::atomic<int> started{0}, broken{0};
    for (int i = 0; i < 4; ++i) {
        waiters.emplace_back([&, i] {
            uint32_t ticket = 0;
            Mail answer;
            if (link.start(wait_request(1, "w" + std::to_string(i)), &ticket) != Status::ok) return;
            ++started;
            if (link.await(ticket, kNever, &answer) == Status::broken) ++broken;
        });
    }
    for (int64_t end = in_ms(10'000); started.load() < 4 && now_ns() < end;) nap_ms(1);
    ASSERT_EQ(started.load(), 4);
    nap_ms(20);
    const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
    const int64_t begun = now_ns();
    ::kill(agent, SIGKILL);
    for (auto& w : waiters) w.join();
    EXPECT_EQ(broken.load(), 4);
    const int64_t took = now_ns() - begun;
    EXPECT_LT(took, tests::slowed(1000 * kMs, took));
}

TEST(AgentLinkTest, KilledAgentIsStartedAgainAndRunsReattachFirst) {
    Place place;
    AgentLink link;
    open_nic(link, 77);
    int reattached = 0;
    link.on_reattach([&](AgentLink& l) {
        ++reattached;
        kagent::OpenNic o;
        std::strcpy(o.device, "fake0");
        o.context_id = 77;
        o.reattach = 1;
        o.held[kagent::kLeaseVis] = 5;
        Mail answer;
        return l.exchange_now(Mail::of(Type::kOpenNic, o), &answer);
    });
    for (int round = 1; round <= 3; ++round) {
        const auto agent = static_cast<pid_t>(link.welcome().agent_pid);
        ::kill(agent, SIGKILL);
        Mail answer;
        kagent::Lease lease;
        lease.context_id = 77;
        lease.kind = kagent::kLeaseVis;
        lease.amount = 1;
        EXPECT_EQ(link.call(Mail::of(Type::kLease, lease), &answer, in_ms(8000)), Status::ok)
            << link.last_error();
        EXPECT_EQ(reattached, round);
        EXPECT_NE(static_cast<pid_t>(link.welcome().agent_pid), agent);
        EXPECT_EQ(link.epoch(), static_cast<uint64_t>(round + 1));
    }
}

TEST(AgentLinkTest, CallsOnOneAnswerSurviveAnAgentThatKeepsDying) {
    Place place;
    AgentLink link;
    std::atomic<bool> stop{false};
    std::thread killer([&] {
        for (int i = 0; i < 5 && !stop; ++i) {
            nap_ms(60);
            if (const pid_t p = place.agent_pid()) ::kill(p, SIGKILL);
        }
        stop = true;
    });
    int calls = 0;
    while (!stop) {
        Mail answer;
        ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(8000)), Status::ok) << link.last_error();
        ++calls;
    }
    killer.join();
    EXPECT_GT(calls, 0);
}

TEST(AgentLinkTest, AShutdownIsAnEventAndTheNextCallMeetsTheNextAgent) {
    Place place;
    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok);
    std::atomic<int> leavings{0};
    link.on_event([&](const Mail& m) { leavings += m.type() == Type::kLeaving; });
    place.shut_down();
    EXPECT_TRUE(eventually([&] {
        link.pump();
        return leavings == 1 && link.socket() < 0;
    }));
    Mail answer;
    EXPECT_EQ(link.call(Mail(Type::kListNics), &answer, in_ms(8000)), Status::ok) << link.last_error();
    EXPECT_EQ(link.epoch(), 2u);
}

TEST(AgentLinkTest, ForkedChildHasAConnectionOfItsOwn) {
    Place place("1000");
    AgentLink link;
    open_nic(link, 1);
    const pid_t child = ::fork();
    if (child == 0) {
        link.reset_after_fork();
        Mail answer;
        const bool ok = link.socket() < 0 && link.call(open_request(2), &answer, in_ms(5000)) == Status::ok;
        ::_exit(ok ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    kagent::ContextRef ref{1};
    Mail answer;
    EXPECT_EQ(link.call(Mail::of(Type::kCloseNic, ref), &answer, in_ms(5000)), Status::ok)
        << "the parent's is untouched";
    EXPECT_EQ(link.epoch(), 1u);
}

TEST(AgentLinkTest, AgentNoticesADeadClientEvenIfAChildHoldsItsSocket) {
    Place place("1000");
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t client = ::fork();
    if (client == 0) {
        AgentLink link;
        open_nic(link, 4711);
        if (::fork() == 0) {  // a child that never calls us again and keeps everything it inherited
            ::close(ready[0]);
            nap_ms(3000);
            ::_exit(0);
        }
        (void)!::write(ready[1], "x", 1);
        nap_ms(10'000);
        ::_exit(0);
    }
    char c = 0;
    ASSERT_EQ(::read(ready[0], &c, 1), 1);
    ::kill(client, SIGKILL);
    ::waitpid(client, nullptr, 0);
    AgentLink link;
    // Its context id is free again as soon as it is cleaned up.
    EXPECT_TRUE(eventually(
        [&] {
            Mail answer;
            return link.call(open_request(4711), &answer, in_ms(2000)) == Status::ok;
        },
        1000));
    ::close(ready[0]);
    ::close(ready[1]);
}

// One agent serves many applications: what one calls its NICs must not become what the others call theirs.
TEST(AgentLinkTest, TheNamesThatAnApplicationGivesToNicsAreItsOwn) {
    Place place;
    place.set("VIADUCT_NICS", "/dev/via_eth0=fake1");
    place.set("VIADUCT_NAMES_DEFAULT_PROVIDER", "fake");
    char folder[] = "/tmp/viaduct-agent-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const std::string file = std::string(folder) + "/environment";
    const std::string write_it = "env >" + file + ".new; mv " + file + ".new " + file;
    ASSERT_EQ(spawn_detached("/bin/sh", {"sh", "-c", write_it}), 0);
    ASSERT_TRUE(eventually([&] { return ::access(file.c_str(), R_OK) == 0; }, 5000));
    std::stringstream environment;
    environment << std::ifstream(file).rdbuf();
    EXPECT_EQ(environment.str().find("VIADUCT_NICS"), std::string::npos);
    EXPECT_NE(environment.str().find("VIADUCT_NAMES_DEFAULT_PROVIDER=fake"), std::string::npos);
    ::unlink(file.c_str());
    ::rmdir(folder);
}

TEST(AgentLinkTest, FindsVipkadByItsVariableOnly) {
    Place place;
    EXPECT_EQ(find_vipkad(), VIADUCT_TEST_VIPKAD);
    place.set("VIADUCT_VIPKAD", "/nonexistent");
    std::string tried;
    EXPECT_EQ(find_vipkad(&tried), "");
    EXPECT_NE(tried.find("/nonexistent"), std::string::npos);
}

}  // namespace
}  // namespace viaduct
