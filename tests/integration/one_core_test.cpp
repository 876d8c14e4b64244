// SPDX-License-Identifier: BSD-2-Clause
// Two processes that share one processor: each one's progress needs the other to run, so a waiting one must
// let go of it (spec/compat T12, T16).
#include <gtest/gtest.h>
#include <sched.h>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

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

/// How long the exchanges took; fails the test when they did not all take place.
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
    server->go();
    client->go();
    const std::string took = client->line();
    EXPECT_NE("", took) << "the exchanges do not come to an end";
    server->go();
    client->go();
    EXPECT_NE("", server->line());
    if (took.empty() || took.find_first_not_of("0123456789") != std::string::npos) {
        ADD_FAILURE() << "the client said " << took;
        return Millis(0);
    }
    testing::Test::RecordProperty(way + "_us_per_exchange", std::to_string(std::stoi(took) * 1000 / times));
    return Millis(std::stoi(took));
}

TEST(OneCore, BlockingCallsHandTheProcessorOver) {
    const Millis took = time_of("block", 2000);
    EXPECT_LE(took, tests::slowed(Millis(2000), took));
}

// Polling without pause: the program does not let go of the processor, so the library has to now and then.
TEST(OneCore, PollingLoopsMakeProgress) {
    const Millis took = time_of("poll", 500);
    EXPECT_LE(took, tests::slowed(Millis(5000), took));
}

}  // namespace
}  // namespace viaduct::integration
