// SPDX-License-Identifier: BSD-2-Clause
// The answer of udp to the agent's inquiry for NICs.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "core/config/config.hpp"
#include "core/provider/loader.hpp"
#include "kagent/nic_answer.hpp"
#include "no_descriptors.hpp"
#include "refused_calls.hpp"

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

TEST(UdpDiscoveryTest, AProviderWithoutInterfacesListsNone) {
    const LoadedProvider udp = load_provider("udp");
    ASSERT_NE(udp.provider, nullptr) << udp.error;
    const Config config = Config::parse("[udp]\ninterfaces = \"\"\n", "test");
    const tests::NoDescriptors none;
    const kagent::NicAnswer answer = kagent::ask_for_nics(*udp.provider, config.settings("udp"));
    EXPECT_TRUE(answer.complete);
    EXPECT_FALSE(answer.may_succeed_later);
    EXPECT_TRUE(answer.rejected.empty());
}

// 0: as expected.
int ask_without_netlink(const Provider& udp, const char* interfaces) {
    const Config config = Config::parse(std::string("[udp]\ninterfaces = \"") + interfaces + "\"\n", "test");
    if (!tests::forbid_netlink(false) || !tests::netlink_is_refused()) return 77;
    const kagent::NicAnswer answer = kagent::ask_for_nics(udp, config.settings("udp"));
    if (answer.complete) return 1;
    if (answer.may_succeed_later) return 2;
    return answer.rejected.size() == 1 && answer.rejected[0].cure.find("status") == std::string::npos ? 0 : 3;
}

TEST(UdpDiscoveryTest, AHostThatRefusesNetlinkSocketsIsNotAskedAgain) {
    const LoadedProvider udp = load_provider("udp");
    ASSERT_NE(udp.provider, nullptr) << udp.error;
    for (const char* const interfaces : {"auto", "lo"}) {
        SCOPED_TRACE(interfaces);
        const pid_t child = ::fork();
        if (child == 0) ::_exit(ask_without_netlink(*udp.provider, interfaces));
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filter of system calls refuses netlink sockets here";
        EXPECT_EQ(WEXITSTATUS(status), 0);
    }
}

}  // namespace
}  // namespace viaduct::udp
