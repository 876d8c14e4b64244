// SPDX-License-Identifier: BSD-2-Clause
// What programs started by a VIA program see of it: nothing (spec/compat L8, L11).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

std::set<int> open_descriptors() {
    std::set<int> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        open.insert(std::stoi(entry.path().filename()));
    return open;
}

/// What the caller of the test has left open. Taken before the library is used for the first time.
const std::set<int> at_start = open_descriptors();

TEST(StartedPrograms, InheritNoDescriptorOfTheLibrary) {
    conformance::Pair pair;  // agent socket, segments, watches: all that there can be
    pair.server.receive(64);
    pair.client.send(pair.client.buffer(64), 64);
    ASSERT_EQ(VIP_SUCCESS, conformance::reap_recv(pair.server.vi).code);
    Child looks("look-around", {});
    std::istringstream seen(looks.line());
    std::string word;
    ASSERT_TRUE(seen >> word);
    ASSERT_EQ("descriptors:", word);
    for (int fd = 0; seen >> fd;)
        EXPECT_TRUE(at_start.contains(fd)) << "descriptor " << fd << " was handed on";
    EXPECT_EQ(0, looks.wait());
}

TEST(StartedPrograms, AndTheirEndsDoNotDisturbConnections) {
    conformance::Pair pair;
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(0, system("true"));
        const pid_t pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) execl("/bin/true", "true", nullptr);
        int status = 0;
        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        pair.server.receive(64);
        pair.client.send(pair.client.buffer(64), 64);
        ASSERT_EQ(VIP_SUCCESS, conformance::reap_recv(pair.server.vi).code);
        ASSERT_EQ(VIP_SUCCESS, conformance::reap_send(pair.client.vi).code);
    }
    EXPECT_EQ(0u, pair.client.errors.size() + pair.server.errors.size());
}

}  // namespace
}  // namespace viaduct::integration
