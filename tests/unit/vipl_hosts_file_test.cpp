// SPDX-License-Identifier: BSD-2-Clause
// The parser of vip_hosts.
#include "vipl/hosts_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/temporary_folder.hpp"

namespace viaduct::vipl {
namespace {

constexpr NicAddress kFirst{{0x02, 0x56, 0, 0, 0, 0x01}};
constexpr NicAddress kSecond{{0x02, 0x56, 0, 0, 0, 0x02}};

TEST(HostsFileTest, ReadsAddressesWithColonsDashesAndBare) {
    EXPECT_EQ(parse_nic_address("02:56:00:00:00:01"), kFirst);
    EXPECT_EQ(parse_nic_address("02-56-00-00-00-01"), kFirst);
    EXPECT_EQ(parse_nic_address("025600000001"), kFirst);
    EXPECT_EQ(parse_nic_address("FF:ff:fF:Ff:00:0a"), (NicAddress{{255, 255, 255, 255, 0, 10}}));
}

TEST(HostsFileTest, RefusesWhatIsNoAddress) {
    for (const char* text : {"", "02", "02:56:00:00:00", "02:56:00:00:00:01:", "02:56:00:00:00:01:02",
                             "02:56:00:00:00:0g", "::::::", "2:56:0:0:0:1", "192.168.0.1", "host"})
        EXPECT_FALSE(parse_nic_address(text)) << text;
}

TEST(HostsFileTest, FindsNamesWithoutRegardToCase) {
    const HostsFile file = HostsFile::parse("02:56:00:00:00:01 Alpha\n");
    EXPECT_EQ(file.address_of("alpha", 0), kFirst);
    EXPECT_EQ(file.address_of("ALPHA", 0), kFirst);
    EXPECT_FALSE(file.address_of("alph", 0));
    EXPECT_FALSE(file.address_of("alphab", 0));
}

TEST(HostsFileTest, EveryWordOfALineIsAName) {
    const HostsFile file = HostsFile::parse("02:56:00:00:00:01 alpha alpha.example node1\n");
    for (const char* name : {"alpha", "alpha.example", "node1"})
        EXPECT_EQ(file.address_of(name, 0), kFirst) << name;
    EXPECT_EQ(file.name_of(kFirst), "alpha");
}

TEST(HostsFileTest, TakesTheNameBeforeTheAddressToo) {
    const HostsFile file = HostsFile::parse("alpha 02:56:00:00:00:01 node1\n");
    EXPECT_EQ(file.address_of("alpha", 0), kFirst);
    EXPECT_EQ(file.address_of("node1", 0), kFirst);
}

TEST(HostsFileTest, CountsTheAddressesOfOneHostByIndex) {
    const HostsFile file = HostsFile::parse(
        "02:56:00:00:00:01 alpha\n"
        "02:56:00:00:00:09 beta\n"
        "02:56:00:00:00:02 alpha\n");
    EXPECT_EQ(file.address_of("alpha", 0), kFirst);
    EXPECT_EQ(file.address_of("alpha", 1), kSecond);
    EXPECT_FALSE(file.address_of("alpha", 2));
}

TEST(HostsFileTest, SkipsCommentsAndLinesThatSayNothing) {
    const HostsFile file = HostsFile::parse(
        "# a comment 02:56:00:00:00:02 gamma\n"
        "\n"
        "   \t\n"
        "no address here\n"
        "02:56:00:00:00:02\n"
        "02:56:00:00:00:01\talpha # beta");
    ASSERT_EQ(file.lines().size(), 1U);
    EXPECT_TRUE(file.knows("alpha"));
    EXPECT_FALSE(file.knows("beta"));
    EXPECT_FALSE(file.knows("gamma"));
}

TEST(HostsFileTest, SurvivesCarriageReturnsAndBytesOfAnyKind) {
    EXPECT_EQ(HostsFile::parse("02:56:00:00:00:01 alpha\r\n").address_of("alpha", 0), kFirst);
    std::string noise;
    for (int i = 0; i < 4096; ++i) noise += static_cast<char>(i * 7919);
    EXPECT_FALSE(HostsFile::parse(noise).knows("alpha"));
}

TEST(HostsFileTest, TheFirstFileThatExistsCounts) {
    const TemporaryFolder folder;
    const std::string path = folder.path() / "hosts";
    std::ofstream(path) << "02:56:00:00:00:01 alpha\n";
    const HostsFile file = HostsFile::find(std::string("/nonexistent/vip_hosts::") + path);
    EXPECT_EQ(file.address_of("alpha", 0), kFirst);
    EXPECT_TRUE(HostsFile::find("/nonexistent/vip_hosts").lines().empty());
}

TEST(HostsFileTest, AnUnknownAddressHasNoName) { EXPECT_EQ(HostsFile::parse("").name_of(kSecond), ""); }

}  // namespace
}  // namespace viaduct::vipl
