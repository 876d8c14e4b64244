// SPDX-License-Identifier: BSD-2-Clause
// The name of a NIC and the default provider of its program in one field of a request to the agent.
#include "core/agent/asked_name.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace viaduct {
namespace {

using kagent::NameText;

std::string name_in(const NameText& text) { return std::string(text.name, ::strnlen(text.name, sizeof text.name)); }

TEST(AskedName, HasTheProviderBehindIt) {
    const NameText text = asked_name("/dev/via_eth0", "udp");
    EXPECT_EQ(name_in(text), "/dev/via_eth0");
    EXPECT_EQ(asked_provider(text.name), "udp");
    EXPECT_EQ(asked_provider(asked_name("", "udp").name), "udp");
}

TEST(AskedName, OfAnOlderProgramHasNoProvider) {
    NameText text;
    std::strcpy(text.name, "nic0");
    EXPECT_EQ(asked_provider(text.name), "");
}

TEST(AskedName, LeavesAProviderOutThatDoesNotFit) {
    for (size_t length = 240; length <= 300; ++length) {
        const std::string name(length, 'n');
        const NameText text = asked_name(name, "udp");
        EXPECT_EQ(name_in(text), name.substr(0, sizeof text.name - 1)) << length;
        EXPECT_EQ(text.name[sizeof text.name - 1], '\0') << length;
        const bool fits = length + 1 + 3 + 1 <= sizeof text.name;
        EXPECT_EQ(asked_provider(text.name), fits ? "udp" : "") << length;
    }
    EXPECT_EQ(asked_provider(asked_name("nic0", std::string(1000, 'p')).name), "");
}

// The field of a hostile program: the sanitizers see each read beyond it.
TEST(AskedName, IsReadNoFurtherThanItsField) {
    struct Packed {
        char name[sizeof(NameText::name)];
        char behind[8];
    } field;
    std::memset(field.behind, 'b', sizeof field.behind);
    for (size_t zero = 0; zero <= sizeof field.name; ++zero) {
        std::memset(field.name, 'x', sizeof field.name);
        if (zero < sizeof field.name) field.name[zero] = '\0';
        const size_t left = zero + 1 < sizeof field.name ? sizeof field.name - zero - 1 : 0;
        EXPECT_EQ(asked_provider(field.name), std::string(left, 'x')) << zero;
    }
}

}  // namespace
}  // namespace viaduct
