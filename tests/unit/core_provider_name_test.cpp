// SPDX-License-Identifier: BSD-2-Clause
// Which provider the name of a NIC means.
#include "core/provider/provider_name.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

std::string_view meant_by(std::string_view name) { return provider_named_by(name, {"acenic", "udp", "paramnet"}); }

TEST(ProviderName, StandsBeforeANumberOrAColon) {
    for (const char* name : {"udp0", "udp17", "udp:eth0", "udp:", "udp0:x", "/dev/udp0", "/dev/udp:eth0", "udp1/port1"})
        EXPECT_EQ(meant_by(name), "udp") << name;
    EXPECT_EQ(meant_by("acenic2/port1"), "acenic");
}

TEST(ProviderName, IsThatOfAnInstalledOne) {
    for (const char* name : {"verbs0", "udpp0", "elsewhere:eth0", "VINIC0", "/dev/via_eth0", "host:udp0", "0", ":", ""})
        EXPECT_EQ(meant_by(name), "") << name;
    EXPECT_EQ(provider_named_by("udp0", {}), "");
}

TEST(ProviderName, WithoutANumberNamesNoNic) {
    for (const char* name : {"udp", "/dev/udp", "udp/0"}) EXPECT_EQ(meant_by(name), "") << name;
}

}  // namespace
}  // namespace viaduct
