// SPDX-License-Identifier: BSD-2-Clause
// An interface that a NIC depends on is switched off: from the kernel's news through the agent to the
// program's error handler.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

TEST(LinkDown, IsACatastropheForAllThatHaveTheNicOpen) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, for a network namespace";
    if (std::system("command -v ip >/dev/null") != 0) GTEST_SKIP() << "needs ip, of the package iproute2";
    End end;
    std::string address;
    for (int i = 0; i < 6; ++i) {
        char pair[4];
        std::snprintf(pair, sizeof pair, i == 0 ? "%02x" : ":%02x",
                      static_cast<const unsigned char*>(end.limits.LocalNicAddress)[i]);
        address += pair;
    }
    // Another namespace has another agent: no NIC of another namespace goes down.
    Child role("link", {"", "", "", address});
    const std::string said = role.line();
    if (said.starts_with("no ")) GTEST_SKIP() << said;
    EXPECT_EQ("done", said);
    EXPECT_EQ(0, role.wait());
    EXPECT_EQ(0u, end.errors.size());
}

}  // namespace
}  // namespace viaduct::integration
