// SPDX-License-Identifier: BSD-2-Clause
// The answer of acenic to the agent's inquiry for NICs.
#include <gtest/gtest.h>

#include "core/config/config.hpp"
#include "no_descriptors.hpp"
#include "providers/acenic/configured_port.hpp"

namespace viaduct::acenic {
namespace {

struct Counted final : NicSink {
    int offered = 0, rejected = 0;
    void offer(const NicInfo&) override { ++offered; }
    void reject(const Rejection&) override { ++rejected; }
};

TEST(AcenicDiscoveryTest, AnAnswerWithoutDescriptorsIsNoListOfAllNics) {
    const Config config = Config::parse("[acenic]\nports = \"net_af_packet,iface=absent\"\n", "test");
    const Settings& settings = config.settings("acenic");
    Counted counted;
    EXPECT_EQ(discover(settings, Hints{}, counted), Status::ok);
    EXPECT_EQ(counted.rejected, 1) << "there is no such interface";
    const tests::NoDescriptors none;
    EXPECT_EQ(discover(settings, Hints{}, counted), Status::out_of_resources);
    EXPECT_EQ(counted.rejected, 2);
    EXPECT_EQ(counted.offered, 0);
}

}  // namespace
}  // namespace viaduct::acenic
