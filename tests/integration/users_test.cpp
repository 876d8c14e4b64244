// SPDX-License-Identifier: BSD-2-Clause
// Processes of different users under one agent of the host: they meet only where the configuration lets them,
// and then the connection is one like any other.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

constexpr const char* kOtherUser = "65534";

/// The file of a socket is there before a server listens.
bool listens_at(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
    close(fd);
    return connected;
}

/// vipkad as the service of a host: at a path, for all users.
class Service {
public:
    explicit Service(bool cross_user)
        : path_("/tmp/viaduct-users-" + std::to_string(getpid())),
          allow_("VIADUCT_AGENT_CROSS_USER", cross_user ? "true" : "false"),
          agent_("VIADUCT_AGENT", path_) {
        pid_ = fork();
        require(pid_ >= 0, "fork");
        if (pid_ == 0) {
            execl(VIADUCT_TEST_VIPKAD, "vipkad", "--socket", path_.c_str(), "--linger-ms", "-1", nullptr);
            _exit(127);
        }
        require(eventually([&] { return listens_at(path_); }), "vipkad does not come up");
    }
    ~Service() {
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

private:
    std::string path_;
    Variable allow_, agent_;
    pid_t pid_ = -1;
};

using Said = std::pair<std::string, std::string>;

/// What the waiting and the asking process say of it. `whether`: "meet" or "apart", as they should.
Said try_to_meet(const std::string& waiting_user, const std::string& asking_user, const std::string& whether) {
    const std::string name = conformance::to_hex(conformance::unique_discriminator());
    const auto start = [&](const std::string& user, const char* what) {
        return std::make_unique<Child>("user", Arguments{"", "", "", user, what, name, whether});
    };
    const auto waits = start(waiting_user, "wait");
    const std::string first = waits->line();
    if (first != "ready") return {first, ""};
    require(conformance::falls_asleep(waits->pid()), "the waiting process falls asleep");
    const auto asks = start(asking_user, "ask");
    const std::string asked = asks->line(), waited = waits->line();
    for (Child* child : {waits.get(), asks.get()}) child->resume();
    if (asked == "exchanged") asks->go();
    if (waited == "exchanged") waits->go();
    return {waited, asked};
}

TEST(Users, MeetOnlyWhereTheConfigurationLetsThem) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    {
        const Service apart(false);
        const Said same = try_to_meet(kOtherUser, kOtherUser, "meet");
        if (same.first == "closed") GTEST_SKIP() << "the build folder is closed to other users";
        EXPECT_EQ(Said("exchanged", "exchanged"), same) << "one user with himself";
        EXPECT_EQ(Said("no client came", "no match"), try_to_meet("0", kOtherUser, "apart"));
        EXPECT_EQ(Said("no client came", "no match"), try_to_meet(kOtherUser, "0", "apart"));
    }
    const Service together(true);
    EXPECT_EQ(Said("exchanged", "exchanged"), try_to_meet("0", kOtherUser, "meet"));
    EXPECT_EQ(Said("exchanged", "exchanged"), try_to_meet(kOtherUser, "0", "meet"));
}

}  // namespace
}  // namespace viaduct::integration
