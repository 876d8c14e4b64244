// SPDX-License-Identifier: BSD-2-Clause
// How the two processes of a measurement end.
#include "utils/measure/pair.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace viaduct::measure {
namespace {

constexpr int kFollowersCode = 7, kLeadersCode = 9;

// What a program ends with that does this, with both processes on the processor it runs on.
int exit_code_of(const std::function<void(Pair&)>& program) {
    const pid_t child = ::fork();
    if (child == 0) {
        const int cpu = ::sched_getcpu();
        Pair pair = Pair::split(4096, cpu, cpu);
        program(pair);
        pair.leave("leader", kLeadersCode);
    }
    int status = 0;
    EXPECT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status);
}

// On one processor the follower mostly comes, leaves and ends while the leader gives way to it.
TEST(Pair, LeaderTakesOverTheCodeOfAFollowerThatLeftFirst) {
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(kFollowersCode, exit_code_of([](Pair& pair) {
                      if (!pair.leader()) pair.leave("follower", kFollowersCode);
                      siginfo_t ended;
                      ::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);  // fails where that is known already
                  }));
    }
}

TEST(Pair, LeaderThatMeetsAFollowerThatLeftEndsWithItsCode) {
    EXPECT_EQ(kFollowersCode, exit_code_of([](Pair& pair) {
                  if (!pair.leader()) pair.leave("follower", kFollowersCode);
                  pair.meet();
              }));
}

TEST(Pair, LeaderThatLeavesFirstEndsWithItsOwnCode) {
    EXPECT_EQ(kLeadersCode, exit_code_of([](Pair& pair) {
                  if (!pair.leader()) ::pause();
              }));
}

}  // namespace
}  // namespace viaduct::measure
