// SPDX-License-Identifier: BSD-2-Clause
// vipkad as a process: providers that block or fail, and a system that refuses threads and netlink sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>

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
    const Fd client = connect_to(place.address);
    ASSERT_EQ(hello(client.get()).type(), Type::kWelcome);
    const Listed before = list(client.get());
    EXPECT_TRUE(before.nics.contains("fake0"));
    EXPECT_FALSE(before.nics.contains("blocked0"));
    ASSERT_TRUE(before.reasons.contains("blocked"));
    EXPECT_EQ(before.reasons.at("blocked"), "it has not answered yet which NICs there are");

    const Fd writer(::open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(writer.valid()) << "the provider reads";
    EXPECT_TRUE(eventually("the NIC is listed", [&] { return list(client.get()).nics.contains("blocked0"); }));
    EXPECT_FALSE(list(client.get()).reasons.contains("blocked"));
    EXPECT_TRUE(list(client.get()).nics.contains("fake0"));
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
    const Fd client = connect_to(place.address);
    ASSERT_EQ(hello(client.get()).type(), Type::kWelcome);
    ::kill(daemon.pid, SIGTERM);
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
}

// From this call on the system refuses threads (the C library tries clone alone only if clone3 is unknown) and netlink
// sockets.
bool forbid_threads_and_netlink() {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {sizeof code / sizeof *code, code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(VipkadNicsTest, WithoutThreadsAndNetlinkSocketsTheNicsOfTheStartAreServed) {
    constexpr int kNoFilter = 77;
    const Place place;
    const pid_t child = ::fork();
    if (child == 0) {
        if (!forbid_threads_and_netlink()) ::_exit(kNoFilter);
        bool served = false;
        {
            const Daemon daemon(place.address, {"--linger-ms", "-1"});
            const Fd client = connect_to(place.address);
            served =
                daemon.up && hello(client.get()).type() == Type::kWelcome && list(client.get()).nics.contains("fake0");
        }
        ::_exit(served ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// The provider's answers: a NIC in want of descriptors, no NIC, a NIC.
TEST(VipkadNicsTest, AProviderInWantOfDescriptorsIsAskedAgainAndSoIsOneWhoseNicHasVanished) {
    Place place;
    place.set("FAKE_ANSWERS", "s01");
    const std::string folders = std::string(VIADUCT_TEST_PROVIDERS) + ":" + VIADUCT_TEST_SCRIPTED_PROVIDER;
    ::setenv("VIADUCT_PROVIDER_PATH", folders.c_str(), 1);
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    const Fd client = connect_to(place.address);
    ASSERT_EQ(hello(client.get()).type(), Type::kWelcome);
    EXPECT_TRUE(list(client.get()).nics.contains("scripted0"));
    EXPECT_TRUE(eventually("the NIC has vanished", [&] { return !list(client.get()).nics.contains("scripted0"); }));
    EXPECT_TRUE(eventually("the NIC is back", [&] { return list(client.get()).nics.contains("scripted0"); }));
    EXPECT_TRUE(list(client.get()).nics.contains("fake0"));
}

}  // namespace
}  // namespace viaduct
