// SPDX-License-Identifier: BSD-2-Clause
// vipkad as a process: providers that block or fail, and a system that refuses threads and netlink sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "refused_calls.hpp"
#include "tests/temporary_folder.hpp"
#include "vipkad_testing.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

struct Listed {
    std::map<std::string, kagent::NicEntry> nics;  // by name
    std::map<std::string, std::string> reasons;    // by provider
};

Listed list(int client) {
    Listed all;
    if (send_mail(client, Mail(Type::kListNics, 2)) != Status::ok) return all;
    for (uint32_t more = 1; more != 0;) {
        Mail m;
        kagent::NicEntry nic;
        kagent::RejectionEntry r;
        if (receive_mail(client, &m) != Status::ok) return all;
        if (m.get(&nic)) {
            more = nic.more;
            all.nics[nic.nic.name] = nic;
        } else if (m.get(&r)) {
            more = r.more;
            all.reasons[std::string(text_of(r.provider))] = text_of(r.reason);
        } else {
            return all;
        }
    }
    return all;
}

// A client that vipkad has welcomed. Where the machine stands still, one hello may take longer than its limit.
Fd join_at(const std::string& address) {
    Fd client;
    EXPECT_TRUE(eventually("vipkad answers", [&] {
        client = connect_to(address);
        return hello(client.get()).type() == Type::kWelcome;
    }));
    return client;
}

Listed list_at(const std::string& address) { return list(join_at(address).get()); }

TEST(VipkadNicsTest, AProviderThatBlocksIsServedWhenItAnswersAndKeepsNoOtherWaiting) {
    const TemporaryFolder folder;
    const std::string gate = (folder.path() / "gate").string();
    ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
    Place place;
    place.set("FAKE_GATE", gate);
    // Place puts it back.
    const std::string folders = std::string(VIADUCT_TEST_PROVIDERS) + ":" + VIADUCT_TEST_BLOCKED_PROVIDER;
    ::setenv("VIADUCT_PROVIDER_PATH", folders.c_str(), 1);
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    const Listed before = list_at(place.address);
    EXPECT_TRUE(before.nics.contains("fake0"));
    EXPECT_FALSE(before.nics.contains("blocked0"));
    ASSERT_TRUE(before.reasons.contains("blocked"));
    EXPECT_EQ(before.reasons.at("blocked"), "it has not answered yet which NICs there are");

    const Fd writer(::open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(writer.valid()) << "the provider reads";
    EXPECT_TRUE(eventually("the NIC is listed", [&] { return list_at(place.address).nics.contains("blocked0"); }));
    const Listed after = list_at(place.address);
    EXPECT_FALSE(after.reasons.contains("blocked"));
    EXPECT_TRUE(after.nics.contains("fake0"));
}

TEST(VipkadNicsTest, AProviderThatBlocksDoesNotKeepVipkadFromEnding) {
    const TemporaryFolder folder;
    const std::string gate = (folder.path() / "gate").string();
    ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
    Place place;
    place.set("FAKE_GATE", gate);
    ::setenv("VIADUCT_PROVIDER_PATH", VIADUCT_TEST_BLOCKED_PROVIDER, 1);
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    const Fd client = join_at(place.address);
    ::kill(daemon.pid, SIGTERM);
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
}

TEST(VipkadNicsTest, WithoutThreadsAndNetlinkSocketsTheNicsOfTheStartAreServed) {
    constexpr int kNoFilter = 77;
    const Place place;
    const pid_t child = ::fork();
    if (child == 0) {
        if (!tests::forbid_netlink(true) || !tests::netlink_is_refused() || !tests::threads_are_refused())
            ::_exit(kNoFilter);
        bool served = false;
        {
            const Daemon daemon(place.address, {"--linger-ms", "-1"});
            served = daemon.up && list_at(place.address).nics.contains("fake0");
        }
        ::_exit(served ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoFilter)
        GTEST_SKIP() << "no filter of system calls refuses threads and netlink sockets here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Standard error of vipkad, in the file of that name.
bool log_to_file() {
    const Fd file(::open(std::getenv("FAKE_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    return file.valid() && ::dup2(file.get(), 2) == 2;
}

// The provider's answers: a NIC in want of descriptors, no NIC, a NIC. How soon each is asked for depends on the
// interfaces of the host, too.
TEST(VipkadNicsTest, AProviderInWantOfDescriptorsIsAskedAgainAndSoIsOneWhoseNicHasVanished) {
    const TemporaryFolder folder;
    const std::string log = (folder.path() / "log").string();
    Place place;
    place.set("FAKE_ANSWERS", "s01");
    place.set("FAKE_LOG", log);
    const std::string folders = std::string(VIADUCT_TEST_PROVIDERS) + ":" + VIADUCT_TEST_SCRIPTED_PROVIDER;
    ::setenv("VIADUCT_PROVIDER_PATH", folders.c_str(), 1);
    Daemon daemon(place.address, {"--linger-ms", "-1", "--log-level", "info"}, log_to_file);
    ASSERT_TRUE(daemon.up);
    const auto says = [&](const std::string& words) {
        std::ifstream file(log);
        return std::string(std::istreambuf_iterator<char>(file), {}).find(words) != std::string::npos;
    };
    EXPECT_TRUE(eventually("the NIC has vanished", [&] { return says("NIC scripted0 has vanished"); }));
    EXPECT_TRUE(eventually("the NIC is back", [&] { return says("NIC scripted0 has appeared"); }));
    const Listed after = list_at(place.address);
    EXPECT_TRUE(after.nics.contains("scripted0"));
    EXPECT_TRUE(after.nics.contains("fake0"));
}

}  // namespace
}  // namespace viaduct
