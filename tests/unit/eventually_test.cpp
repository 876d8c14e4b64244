// SPDX-License-Identifier: BSD-2-Clause
// tests/eventually.hpp with a clock, run queues and a pressure file of the test's own: no test here waits.
#include "tests/eventually.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

namespace viaduct::tests {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMs = 1'000'000;

// Each pause lets 100 ms of wall time pass. In it, a process waits for a processor as long as `queued_ms` says.
struct Machine {
    int64_t wall = 7'000 * kMs;
    std::map<pid_t, int64_t> queued_ms{{::getpid(), 0}};
    std::map<pid_t, int64_t> queued{{::getpid(), 40 * kMs}};
    std::optional<int64_t> stalled_ms = 0, stalled = 0;
    int pauses = 0;
};

struct FakeReaders {
    std::shared_ptr<Machine> machine;
    int64_t wall_ns() const { return machine->wall; }
    std::vector<std::optional<int64_t>> queued_ns(const std::vector<pid_t>& pids) const {
        std::vector<std::optional<int64_t>> all;
        for (const pid_t pid : pids) {
            const auto found = machine->queued.find(pid);
            all.push_back(found == machine->queued.end() ? std::nullopt : std::optional(found->second));
        }
        return all;
    }
    std::optional<int64_t> stalled_ns() const { return machine->stalled; }
    void pause(int) const {
        ++machine->pauses;
        machine->wall += 100 * kMs;
        for (auto& [pid, queued] : machine->queued) queued += machine->queued_ms[pid] * kMs;
        if (machine->stalled) *machine->stalled += machine->stalled_ms.value_or(0) * kMs;
    }
};

struct Eventually : testing::Test {
    // Wall time after which the wait for a condition that never holds ends.
    std::chrono::milliseconds gives_up_after(std::vector<pid_t> pids = {}) {
        const int64_t begun = machine->wall;
        waited = eventually(
            "rain", [] { return false; }, {std::move(pids), 10s}, FakeReaders{machine});
        EXPECT_FALSE(waited);
        return std::chrono::milliseconds((machine->wall - begun) / kMs);
    }
    std::shared_ptr<Machine> machine = std::make_shared<Machine>();
    Waited waited;
};

struct SlowReaders : FakeReaders {
    std::vector<std::optional<int64_t>> queued_ns(const std::vector<pid_t>& pids) const {
        machine->wall += 3'000 * kMs;
        return FakeReaders::queued_ns(pids);
    }
};

TEST_F(Eventually, ALookAtTheFiguresIsNoRunningTime) {
    const RunningTime<SlowReaders> time({}, SlowReaders{{machine}});
    machine->wall += 1'000 * kMs;
    EXPECT_EQ(time.running_ns(), 1'000 * kMs);
    EXPECT_EQ(time.running_ns(), 4'000 * kMs) << "time after the construction counts";
}

TEST_F(Eventually, EndsAtOnceWhenTheConditionHolds) {
    EXPECT_TRUE(eventually(
        "nothing", [] { return true; }, {}, FakeReaders{machine}));
    EXPECT_EQ(machine->pauses, 0);
}

TEST_F(Eventually, EndsAsSoonAsTheConditionHolds) {
    const auto condition = [this] { return machine->pauses == 3; };
    EXPECT_TRUE(eventually("three pauses", condition, {}, FakeReaders{machine}));
    EXPECT_EQ(machine->pauses, 3);
}

TEST_F(Eventually, GivesUpAfterTheLimitOnAQuietMachine) { EXPECT_EQ(gives_up_after(), 10s); }

TEST_F(Eventually, SaysWhatItWaitedForAndHowLong) {
    machine->queued_ms[::getpid()] = 50;
    gives_up_after();
    EXPECT_EQ(waited.message,
              "waited for: rain; not so after 20000 ms of wall time, 10000 ms of running time (limit 10000 ms)");
    const testing::AssertionResult result = waited;
    EXPECT_EQ(result.message(), waited.message);
}

TEST_F(Eventually, DoesNotCountTheTimeInARunQueue) {
    machine->queued_ms[::getpid()] = 75;
    EXPECT_EQ(gives_up_after(), 40s);
}

TEST_F(Eventually, DoesNotCountTheStallOfOtherProcesses) {
    machine->stalled_ms = 90;
    EXPECT_EQ(gives_up_after(), 10s);
}

TEST_F(Eventually, ReadsTheProcessesThatAreNamed) {
    machine->queued[11] = machine->queued[12] = 0;
    machine->queued_ms = {{::getpid(), 90}, {11, 30}, {12, 20}};
    EXPECT_EQ(gives_up_after({11, 12}), 20s);
}

TEST_F(Eventually, TakesTheSystemsStallWhereAProcessHasNoFigures) {
    machine->queued_ms[::getpid()] = 90;
    machine->stalled_ms = 50;
    EXPECT_EQ(gives_up_after({::getpid(), 13}), 20s);
}

TEST_F(Eventually, CountsWallTimeWhereNothingIsKnown) {
    machine->queued.clear();
    machine->stalled.reset();
    EXPECT_EQ(gives_up_after(), 10s);
}

TEST_F(Eventually, KeepsTheFiguresOfAProcessThatEnds) {
    machine->queued_ms[::getpid()] = 50;
    const int64_t begun = machine->wall;
    const auto condition = [&] {
        if (machine->wall - begun == 15'000 * kMs) machine->queued.clear();
        return false;
    };
    waited = eventually("rain", condition, {{}, 10s}, FakeReaders{machine});
    EXPECT_FALSE(waited);
    EXPECT_NE(waited.message.find("15000 ms of wall time, 10000 ms of running"), std::string::npos) << waited.message;
}

TEST_F(Eventually, HasAHardEndForProcessesThatNeverRun) {
    machine->queued_ms[::getpid()] = 100;
    EXPECT_EQ(gives_up_after(), 200s);
}

TEST_F(Eventually, ChecksOnceMoreAtTheEnd) {
    // The condition comes true while the figures are read.
    const int64_t end = machine->wall + 10'000 * kMs;
    int checks_at_end = 0;
    const auto condition = [&] { return machine->wall == end && ++checks_at_end == 2; };
    EXPECT_TRUE(eventually("the end", condition, {{}, 10s}, FakeReaders{machine}));
}

// Whether the kernel counts the time of threads in run queues.
bool kernel_counts_queues() {
    std::ifstream file("/proc/self/schedstat");
    long long ran = 0, queued = 0, times = 0;
    return file >> ran >> queued >> times && times > 0;
}

TEST(SystemReaders, ReadThisProcessAndNoProcessThatIsNotThere) {
    const SystemReaders readers;
    EXPECT_GT(readers.wall_ns(), 0);
    const auto queued = readers.queued_ns({::getpid(), 0x7FFF'FFFF, 0});
    ASSERT_EQ(queued.size(), 3u);
    EXPECT_EQ(queued[0].has_value(), kernel_counts_queues());
    EXPECT_FALSE(queued[1]);
    EXPECT_FALSE(queued[2]) << "the first process has no parent";
    EXPECT_EQ(readers.stalled_ns().has_value(), std::ifstream("/proc/pressure/cpu").get() != EOF);
}

TEST(SystemReaders, AFamilyIsAProcessAndAllBelowIt) {
    int told[2], gate[2];
    ASSERT_EQ(::pipe(told) + ::pipe(gate), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(gate[1]);
        ::prctl(PR_SET_NAME, ") 1 (x");
        const pid_t grandchild = ::fork();
        if (grandchild != 0) (void)!::write(told[1], &grandchild, sizeof grandchild);
        char end = 0;
        (void)!::read(gate[0], &end, 1);
        ::_exit(0);
    }
    pid_t grandchild = 0;
    ASSERT_EQ(::read(told[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
    const SystemReaders::Children children = SystemReaders::all_children();
    const std::vector<pid_t> own = SystemReaders::family(::getpid(), children);
    for (const pid_t member : {::getpid(), child, grandchild}) EXPECT_EQ(std::count(own.begin(), own.end(), member), 1);
    EXPECT_EQ(SystemReaders::family(child, children), (std::vector{child, grandchild}));
    EXPECT_EQ(SystemReaders::family(grandchild, children), std::vector{grandchild});
    for (const int fd : {told[0], told[1], gate[0], gate[1]}) ::close(fd);
    ::waitpid(child, nullptr, 0);
}

// Of two processes on one processor, one is in the run queue at any time. Their parent sleeps.
TEST(SystemReaders, CountTheQueuesOfChildren) {
    if (!kernel_counts_queues()) GTEST_SKIP() << "this kernel does not count the time in run queues";
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    const pid_t parent = ::fork();
    if (parent == 0) {
        ::sched_setaffinity(0, sizeof one, &one);
        for (int child = 0; child < 2; ++child) {
            if (::fork() != 0) continue;
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile bool ever = true; ever;) {
            }
        }
        for (;;) ::pause();
    }
    RunningTime time({parent});
    const auto waits = [&] { return time.wall_ns() - time.running_ns() > 50 * kMs; };
    EXPECT_TRUE(eventually("the children of the process have waited for the processor", waits));
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
}

}  // namespace
}  // namespace viaduct::tests
