// SPDX-License-Identifier: BSD-2-Clause
// The tolerant and the strict reading of the guide (`vipl.strict`, spec/compat M10).

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// The answer of VipDestroyVi for a VI with a completion that was not fetched, and whether a descriptor
// outside of the region its handle names is let pass. In a process of its own: settings are read once.
int strict_answers() {
    End end;
    static char elsewhere[64];
    VIP_MEM_HANDLE other = 0;
    VipRegisterMem(end.nic, elsewhere, sizeof elsewhere, nullptr, &other);
    VipPostRecv(end.vi, end.descriptor(), other);
    const bool slip_refused = end.state() == VIP_STATE_ERROR;
    VipDisconnect(end.vi);  // a descriptor that was let pass is flushed now
    if (slip_refused) VipPostRecv(end.vi, end.descriptor(), end.region);
    VipDisconnect(end.vi);
    const bool destroy_refused = VipDestroyVi(end.vi) == VIP_ERROR_RESOURCE;
    return (slip_refused ? 1 : 0) + (destroy_refused ? 2 : 0);
}

int answers_with(const char* strict) {
    use_this_build();
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("VIADUCT_VIPL_STRICT", strict, 1);
        ::_exit(strict_answers());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PolicyTest, TheTolerantReadingLetsHabitsOfTheTimePass) { EXPECT_EQ(answers_with("0"), 0); }

TEST(PolicyTest, TheStrictReadingRefusesThem) { EXPECT_EQ(answers_with("1"), 3); }

}  // namespace
}  // namespace viaduct::vipl
