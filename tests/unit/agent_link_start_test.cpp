// SPDX-License-Identifier: BSD-2-Clause
// How AgentLink comes to an agent: finds one, or starts one, unseen by the program.
#include "core/agent/link.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "agent_link_testing.hpp"
#include "core/agent/start_agent.hpp"
#include "tests/eventually.hpp"
#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

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
    tests::RunningTime time;
    EXPECT_EQ(link.connect(), Status::broken);
    EXPECT_LT(time.running_ns(), 1000 * kMs) << "nothing to wait for";
    EXPECT_NE(link.last_error().find("/nonexistent/vipkad"), std::string::npos) << link.last_error();
}

TEST(AgentLinkTest, NeverStartsAnAgentForAPath) {
    Place place;
    place.set("VIADUCT_AGENT", "/tmp/viaduct-unit-no-such-socket");
    AgentLink link;
    EXPECT_EQ(link.connect(), Status::broken);
    EXPECT_NE(::access("/tmp/viaduct-unit-no-such-socket", F_OK), 0);
}

// While the agent is on its way for so long that a second one is started, no process makes it slower by starting many.
TEST(AgentLinkTest, ManyThatWaitForASlowAgentStartFewMore) {
    Place place;
    const GatedVipkad slow(place);
    std::vector<std::unique_ptr<AgentLink>> links;
    std::vector<std::thread> threads;
    std::atomic<int> connected{0};
    for (int i = 0; i < 16; ++i) {
        links.push_back(std::make_unique<AgentLink>());
        threads.emplace_back([&, link = links.back().get()] { connected += link->connect() == Status::ok ? 1 : 0; });
    }
    EXPECT_TRUE(eventually("a second agent is started", [&] { return slow.how_many() >= 2; }));
    slow.let_all_go();
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(connected, 16);
    EXPECT_LE(slow.how_many(), 3u);
}

TEST(AgentLinkTest, AnAgentThatDiesOnItsWayIsReplacedAtOnce) {
    Place place;
    const SlowVipkad dying(place, "[ $(wc -l <$(dirname $0)/starts) -ge 3 ] || exit 1");
    AgentLink link;
    tests::RunningTime time(kAnyProcess);
    EXPECT_EQ(link.connect(), Status::ok) << link.last_error();
    EXPECT_LT(time.running_ns(), 900 * kMs);
    size_t most = 3;  // and one for each turn that came while the third was on its way: after 1 s, 3 s, 7 s
    for (int64_t due = 1000 * kMs, more = 2000 * kMs; due <= time.wall_ns(); due += more, more *= 2) ++most;
    EXPECT_GE(dying.how_many(), 3u);
    EXPECT_LE(dying.how_many(), most);
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
    // The agent has all processors that a process here can have, and this test may have been given fewer.
    cpu_set_t everywhere;
    std::memset(&everywhere, 0xFF, sizeof everywhere);
    ASSERT_EQ(::sched_setaffinity(0, sizeof everywhere, &everywhere), 0);
    EXPECT_EQ(stat_field(agent, "Cpus_allowed_list:"), stat_field(self, "Cpus_allowed_list:"));
    ::sched_setaffinity(0, sizeof all, &all);
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
    const ssize_t len = ::readlink(("/proc/" + std::to_string(agent) + "/cwd").c_str(), target, sizeof target - 1);
    EXPECT_EQ(std::string(target, static_cast<size_t>(std::max<ssize_t>(len, 0))), "/");
    EXPECT_EQ(std::stoul(stat_field(agent, "SigIgn:"), nullptr, 16) & (1ul << (SIGCHLD - 1)), 0u);
    ::close(inherited);
}

TEST(AgentLinkTest, ManyProcessesThatStartAtOnceShareOneAgent) {
    Place place("2000");
    constexpr int kProcesses = 24;
    int gate[2], results[2], stay[2];
    ASSERT_EQ(::pipe(gate), 0);
    ASSERT_EQ(::pipe(results), 0);
    ASSERT_EQ(::pipe(stay), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            char c = 0;
            ::close(gate[1]);
            ::close(stay[1]);
            (void)!::read(gate[0], &c, 1);
            AgentLink link;
            const uint32_t pid = link.connect() == Status::ok ? link.welcome().agent_pid : 0;
            (void)!::write(results[1], &pid, sizeof pid);
            ::close(results[1]);
            (void)!::read(stay[0], &c, 1);  // the agent has a client until all have met it, however late they come
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
    ::close(stay[0]);
    ::close(stay[1]);
    for (const pid_t c : children) ::waitpid(c, nullptr, 0);
    ASSERT_EQ(agents.size(), static_cast<size_t>(kProcesses));
    for (const uint32_t a : agents) EXPECT_EQ(a, agents[0]);
    EXPECT_NE(agents[0], 0u);
}

TEST(AgentLinkTest, CallersInAHurryDoNotStartAnAgentEach) {
    Place place;
    const GatedVipkad slow(place);
    AgentLink link;
    Status s = Status::timeout;
    for (int attempt = 0; attempt < 5; ++attempt) ASSERT_EQ(link.connect(in_ms(10)), Status::timeout);
    slow.let_all_go();
    EXPECT_TRUE(eventually("an attempt ends", [&] { return (s = link.connect(in_ms(10))) != Status::timeout; }));
    EXPECT_EQ(s, Status::ok) << link.last_error();
    EXPECT_LE(slow.how_many(), 4u);
}

// One agent serves many applications: what one calls its NICs must not become what the others call theirs.
TEST(AgentLinkTest, TheNamesThatAnApplicationGivesToNicsAreItsOwn) {
    Place place;
    place.set("VIADUCT_NICS", "/dev/via_eth0=fake1");
    place.set("VIADUCT_NAMES_DEFAULT_PROVIDER", "fake");
    const TemporaryFolder folder;
    const std::string file = folder.path() / "environment";
    const std::string write_it = "env >" + file + ".new; mv " + file + ".new " + file;
    ASSERT_EQ(spawn_detached("/bin/sh", {"sh", "-c", write_it}), 0);
    ASSERT_TRUE(eventually("the environment is written", [&] { return ::access(file.c_str(), R_OK) == 0; }));
    std::stringstream environment;
    environment << std::ifstream(file).rdbuf();
    EXPECT_EQ(environment.str().find("VIADUCT_NICS"), std::string::npos);
    EXPECT_NE(environment.str().find("VIADUCT_NAMES_DEFAULT_PROVIDER=fake"), std::string::npos);
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
