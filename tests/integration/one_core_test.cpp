// SPDX-License-Identifier: BSD-2-Clause
// Two processes that share one processor: each one's progress needs the other to run, so a waiting one must
// let go of it (spec/compat T12, T16).
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <chrono>
#include <cstdio>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

constexpr Millis kMostTime{60'000};  // wall time, beside others on the processor

/// This thread, and processes started while this lives, run on one processor.
class OneProcessor {
public:
    OneProcessor() {
        require(sched_getaffinity(0, sizeof before_, &before_) == 0, "sched_getaffinity");
        int first = 0;
        while (!CPU_ISSET(first, &before_)) ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        require(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
    }
    ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
    OneProcessor(const OneProcessor&) = delete;
    OneProcessor& operator=(const OneProcessor&) = delete;

private:
    cpu_set_t before_;
};

/// Processor time that the process has used.
std::chrono::nanoseconds used_by(const Child& child) {
    clockid_t clock{};
    timespec used{};
    require(clock_getcpuclockid(child.pid(), &clock) == 0, "the clock of a process");
    require(clock_gettime(clock, &used) == 0, "its processor time");
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Processor time of both processes for the exchanges; fails the test when they did not all take place. A process that
/// keeps the processor while it waits uses up a time slice in each exchange. Other load on the machine changes wall
/// time only.
Millis time_of(const std::string& way, int times) {
    End for_the_address;
    const std::string discriminator = conformance::unique_discriminator();
    const auto arguments = [&](const char* side) {
        return arguments_for(for_the_address, discriminator, {side, way, std::to_string(times)});
    };
    std::unique_ptr<Child> server, client;
    {
        const OneProcessor pinned;
        server = std::make_unique<Child>("pingpong", arguments("serve"));
        client = std::make_unique<Child>("pingpong", arguments("ask"));
    }
    EXPECT_EQ("ready", server->line());
    EXPECT_EQ("ready", client->line());
    const auto before = used_by(*server) + used_by(*client);
    server->go();
    client->go();
    EXPECT_NE("", client->line(kMostTime)) << "the exchanges do not come to an end";
    const auto took = std::chrono::duration_cast<Millis>(used_by(*server) + used_by(*client) - before);
    server->go();
    client->go();
    EXPECT_NE("", server->line());
    std::printf("%d exchanges, %s: %lld ms of processor time\n", times, way.c_str(),
                static_cast<long long>(took.count()));
    return took;
}

TEST(OneCore, BlockingCallsHandTheProcessorOver) { EXPECT_LE(time_of("block", 2000), Millis(1000)); }

// Polling without pause: the program does not let go of the processor, so the library has to now and then.
TEST(OneCore, PollingLoopsMakeProgress) { EXPECT_LE(time_of("poll", 500), Millis(1000)); }

}  // namespace
}  // namespace viaduct::integration
