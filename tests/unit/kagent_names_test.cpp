// SPDX-License-Identifier: BSD-2-Clause
// What names mean to the agent.
#include "kagent/names.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "fake_provider/fake_control.hpp"

namespace viaduct::kagent {
namespace {

class NicNamesTest : public ::testing::Test {
protected:
    NicNamesTest() {
        for (uint16_t i = 0; i < 2; ++i) add("acenic", i);
        for (uint16_t i = 0; i < 3; ++i) add("paramnet", i);
        naming.nics = &nics;
        naming.default_provider = "paramnet";
    }
    void add(const char* provider, uint16_t index) {
        NicInfo n = fake::nic(provider, index);
        std::strcpy(n.provider, provider);
        nics.push_back(n);
    }
    std::string opened(const char* name) {
        const auto found = find_nic(naming, name);
        return found ? nics[*found].name : "";
    }
    std::vector<NicInfo> nics;
    NicNaming naming;
};

TEST_F(NicNamesTest, CanonicalNamesNameThemselves) {
    EXPECT_EQ(opened("paramnet2"), "paramnet2");
    EXPECT_EQ(opened("acenic1"), "acenic1");
    EXPECT_EQ(opened("paramnet3"), "");
}

TEST_F(NicNamesTest, NamesOfFormerTimesCountTheDefaultProvidersNics) {
    for (const char* family :
         {"/dev/via_eth", "/dev/via_lo", "/dev/clanvi", "VINIC", "nic", "/dev/paramnet"}) {
        EXPECT_EQ(opened((std::string(family) + "0").c_str()), "paramnet0") << family;
        EXPECT_EQ(opened((std::string(family) + "2").c_str()), "paramnet2") << family;
        EXPECT_EQ(opened((std::string(family) + "3").c_str()), "")
            << family << ": enumeration by counting must end";
        EXPECT_EQ(opened(family), "paramnet0") << family;
    }
    EXPECT_EQ(opened("/etc/via_lo"), "paramnet0");
    EXPECT_EQ(opened("/dev/via_lo"), "paramnet0");
}

TEST_F(NicNamesTest, ProvidersGiveNicsOtherNamesForWhichNoOtherNicStandsIn) {
    const std::vector<std::vector<std::string>> other = {
        {"acenic:eth0"}, {"acenic:eth1", "acenic:192.0.2.1"}, {}, {}, {}};
    const std::vector<std::string> providers = {"acenic", "udp", "paramnet"};
    naming.other_names = &other;
    naming.providers = &providers;
    EXPECT_EQ(opened("acenic:eth1"), "acenic1");
    EXPECT_EQ(opened("acenic:192.0.2.1"), "acenic1");
    for (const char* absent : {"acenic:eth2", "udp:eth0", "udp:192.0.2.1", "paramnet:0", "udp:"})
        EXPECT_EQ(opened(absent), "") << absent;
    EXPECT_EQ(opened("elsewhere:eth1"), "paramnet1") << "a name of former times like any other";
}

TEST_F(NicNamesTest, NoOtherNicStandsInForOneOfAProviderThatIsNotThere) {
    const std::vector<std::string> providers = {"acenic", "udp", "paramnet"};
    naming.providers = &providers;
    for (const char* absent : {"udp0", "udp1", "acenic2", "udp:eth0", "/dev/udp0", "acenic2/port1", "/dev/udp0:x"}) {
        bool guessed = false;
        EXPECT_FALSE(find_nic(naming, absent, &guessed)) << absent;
        EXPECT_FALSE(counts_default_nics(naming, absent)) << absent;
    }
    EXPECT_EQ(opened("acenic1"), "acenic1");
    EXPECT_EQ(opened("udpp0"), "paramnet0") << "of no provider";
}

TEST_F(NicNamesTest, NicsOfParamnetAreNotCountedAmongThoseOfAnotherDefaultProvider) {
    const std::vector<std::string> providers = {"acenic", "paramnet"};
    naming.providers = &providers;
    for (int i = 0; i < 4; ++i) add("acenic", static_cast<uint16_t>(2 + i));
    naming.default_provider = "acenic";
    EXPECT_EQ(opened("VINIC3"), "acenic3");
    EXPECT_EQ(opened("paramnet2"), "paramnet2");
    EXPECT_EQ(opened("paramnet3"), "");
    EXPECT_EQ(opened("/dev/paramnet3"), "");
}

TEST_F(NicNamesTest, WindowsNamesCountFromOne) {
    EXPECT_EQ(opened("\\\\.\\VI"), "paramnet0");
    EXPECT_EQ(opened("\\\\.\\VI0"), "");
    EXPECT_EQ(opened("\\\\.\\VI1"), "paramnet0");
    EXPECT_EQ(opened("\\\\.\\VI3"), "paramnet2");
    EXPECT_EQ(opened("\\\\.\\VI4"), "") << "enumeration by counting must end";
}

TEST_F(NicNamesTest, HugeNumbersAreBeyondEveryNic) {
    EXPECT_EQ(opened("VINIC4294967296"), "");
    EXPECT_EQ(opened("nic18446744073709551616"), "");
    EXPECT_EQ(opened("nic99999999999999999999999999999999999"), "");
}

TEST_F(NicNamesTest, PathThatBeginsWithANicOpensIt) {
    EXPECT_EQ(opened("/dev/acenic1"), "acenic1");
    EXPECT_EQ(opened("acenic0/port1"), "acenic0");
    EXPECT_EQ(opened("acenic1:7"), "acenic1");
}

TEST_F(NicNamesTest, UnknownNamesOpenTheDefaultNicUnlessStrict) {
    EXPECT_EQ(opened("myrinet"), "paramnet0");
    EXPECT_EQ(opened("myrinet1"), "paramnet1");
    EXPECT_EQ(opened("myrinet7"), "");
    EXPECT_EQ(opened(""), "paramnet0");
    naming.strict = true;
    EXPECT_EQ(opened("myrinet"), "");
    EXPECT_EQ(opened(""), "");
    EXPECT_EQ(opened("VINIC1"), "paramnet1");
    EXPECT_EQ(opened("acenic0"), "acenic0");
}

TEST_F(NicNamesTest, WithoutANicOfTheDefaultProviderNoOtherNicStandsIn) {
    naming.default_provider = "verbs";
    for (const char* name : {"VINIC0", "VINIC1", "nic0", "/dev/via_eth0", "", "myrinet"}) {
        EXPECT_EQ(opened(name), "") << name;
        EXPECT_TRUE(counts_default_nics(naming, name)) << name;
    }
    naming.strict = true;
    EXPECT_TRUE(counts_default_nics(naming, "VINIC0"));
    EXPECT_FALSE(counts_default_nics(naming, "myrinet")) << "refused for its name";
    EXPECT_EQ(opened("acenic1"), "acenic1");
}

TEST_F(NicNamesTest, WithoutAnyNicNothingIsOpened) {
    nics.clear();
    EXPECT_EQ(opened("/dev/via_lo"), "");
    EXPECT_EQ(opened("anything"), "");
}

TEST(HostNamesTest, ThisHostIsKnownByItsNamesAndAddresses) {
    HostIp ip;
    ip.length = 4;
    ip.bytes = {192, 0, 2, 7};
    const std::vector<HostIp> addresses = {ip};
    for (const char* name : {"node7", "NODE7", "node7.cluster.example", "localhost", "localhost.localdomain",
                             "127.0.0.1", "127.3.4.5", "::1", "192.0.2.7"}) {
        EXPECT_TRUE(names_this_host(name, "node7.cluster.example", addresses)) << name;
    }
    for (const char* name :
         {"", "node", "node7.", "node77", "cluster.example", "192.0.2.8", "::2", "127.0.0", "node7.other"}) {
        EXPECT_FALSE(names_this_host(name, "node7.cluster.example", addresses)) << name;
    }
}

TEST(HostNamesTest, TheLongestNameOfAHostIsWhole) {
    const std::string longest(HOST_NAME_MAX, 'h');
    constexpr int kNotAllowed = 77;
    const pid_t child = ::fork();
    if (child == 0) {
        const bool alone = ::unshare(CLONE_NEWUTS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0;
        if (!alone || ::sethostname(longest.data(), longest.size()) != 0) ::_exit(kNotAllowed);
        ::_exit(own_hostname() == longest ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "needs a UTS namespace of its own";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DevicesTest, TheKernelTellsItsInterfacesAndTheirAddresses) {
    const Devices d = Devices::look();
    EXPECT_EQ(d.error, "");
    bool loopback = false;
    for (const LinkInfo& l : d.links) {
        EXPECT_FALSE(l.name.empty());
        loopback = loopback || l.loopback;
    }
    EXPECT_TRUE(loopback) << "every network namespace has one";
}

}  // namespace
}  // namespace viaduct::kagent
