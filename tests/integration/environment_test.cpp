// SPDX-License-Identifier: BSD-2-Clause
// What a program sees of Viaduct on the terminal (nothing), and of a configuration with two NICs.
#include <gtest/gtest.h>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

class Silence : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ends, Silence, testing::Values("tidy", "untidy"),
                         [](const auto& test) { return test.param; });

// stdout and stderr come through one pipe; the agent is started by the program and has none of them.
TEST_P(Silence, AProgramThatUsesEverythingSeesNoOutputButItsOwn) {
    const OtherAgent own("-silence");
    Child busy("busy", {GetParam()});
    EXPECT_EQ("", busy.everything());
    EXPECT_EQ(0, busy.wait());
}

TEST(TwoNics, ByConfigurationAreBothUsableAndAThirdOneIsNotThere) {
    const OtherAgent own("-two-nics");
    const Variable two("VIADUCT_PARAMNET_NICS", "2");
    Child role("two-nics", {});
    EXPECT_EQ("done", role.line());
    EXPECT_EQ(0, role.wait());
}

}  // namespace
}  // namespace viaduct::integration
