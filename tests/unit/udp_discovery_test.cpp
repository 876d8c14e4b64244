// SPDX-License-Identifier: BSD-2-Clause
// The answer of udp to the agent's inquiry for NICs.
#include <gtest/gtest.h>

#include <string>

#include "core/config/config.hpp"
#include "core/provider/loader.hpp"
#include "kagent/nic_answer.hpp"
#include "no_descriptors.hpp"

namespace viaduct::udp {
namespace {

TEST(UdpDiscoveryTest, AnAnswerWithoutDescriptorsIsNoListOfAllNics) {
    const LoadedProvider udp = load_provider("udp");
    ASSERT_NE(udp.provider, nullptr) << udp.error;
    for (const std::string interfaces : {"auto", "lo"}) {
        SCOPED_TRACE(interfaces);
        const Config config = Config::parse("[udp]\ninterfaces = \"" + interfaces + "\"\n", "test");
        const Settings& settings = config.settings("udp");
        EXPECT_TRUE(kagent::ask_for_nics(*udp.provider, settings).complete);
        const tests::NoDescriptors none;
        const kagent::NicAnswer answer = kagent::ask_for_nics(*udp.provider, settings);
        EXPECT_FALSE(answer.complete);
        EXPECT_TRUE(answer.may_succeed_later);
        EXPECT_TRUE(answer.offered.empty());
        ASSERT_EQ(answer.rejected.size(), 1u);
        EXPECT_NE(answer.rejected[0].cure.find("ulimit -n"), std::string::npos) << answer.rejected[0].cure;
    }
}

}  // namespace
}  // namespace viaduct::udp
