// SPDX-License-Identifier: BSD-2-Clause
// Whether a program could start a better daemon than one with its own flaws: exactly if the kernel lets the program
// raise the limit or the priority that is low. Each test asks in a process of its own.
#include "core/agent/own_limits.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace viaduct {
namespace {

constexpr int kNice = 10;
constexpr rlim_t kSeconds = 100'000;
enum Exit { kOtherFlaws = 1, kNoNamespace, kSays, kSaysAndCan, kNeither, kCan };

bool set_priority(bool low) { return ::setpriority(PRIO_PROCESS, 0, low ? kNice : 0) == 0; }
bool set_processor_time(bool low) {
    const rlim_t most = low ? kSeconds : RLIM_INFINITY;
    const rlimit limit{most, most};
    return ::setrlimit(RLIMIT_CPU, &limit) == 0;
}

Exit ask(bool (*set)(bool low), uint32_t flaw, bool in_user_namespace) {
    set(true);
    if (in_user_namespace && ::unshare(CLONE_NEWUSER) != 0) return kNoNamespace;
    if (own_flaws() != flaw) return kOtherFlaws;
    const bool says = could_do_better(flaw), can = set(false);
    return says ? (can ? kSaysAndCan : kSays) : (can ? kCan : kNeither);
}

Exit answer(bool (*set)(bool low), uint32_t flaw, bool in_user_namespace) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(ask(set, flaw, in_user_namespace));
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return static_cast<Exit>(WEXITSTATUS(status));
}

void expect_the_truth(bool in_user_namespace) {
    for (const Exit got : {answer(set_priority, kPriority, in_user_namespace),
                           answer(set_processor_time, kProcessorTime, in_user_namespace)}) {
        if (got == kOtherFlaws) GTEST_SKIP() << "this process has inherited other limits";
        if (got == kNoNamespace) GTEST_SKIP() << "no user namespace can be made here";
        EXPECT_TRUE(got == kSaysAndCan || got == kNeither) << got;
    }
}

TEST(CouldDoBetter, IsWhatTheKernelAllows) { expect_the_truth(false); }

// The process has all capabilities in its namespace, and none of them has an effect on its limits.
TEST(CouldDoBetter, IsWhatTheKernelAllowsInAUserNamespace) { expect_the_truth(true); }

TEST(CouldDoBetter, ADaemonWithoutFlawsIsNeverReplaced) { EXPECT_FALSE(could_do_better(0)); }

}  // namespace
}  // namespace viaduct
