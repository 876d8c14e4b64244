// SPDX-License-Identifier: BSD-2-Clause
// viaduct_integration --gtest_filter=Soak.* [--seconds N]: 64 processes, each with each, messages
// of random sizes, every byte looked at, and no memory that grows.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

constexpr int kProcesses = 64;
constexpr long kGrowthKib =
    512;  // malloc's and the kernel's own rounding; what leaks with each message is far more

/// Of all processes what they have said by now. Where one fails the others wait for it, and the one asked first
/// tells of that only.
std::string whatever_they_say(const std::vector<std::unique_ptr<Child>>& all) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::string line = all[i]->line(Millis(10)); !line.empty(); line = all[i]->line(Millis(10)))
            text += "\nprocess " + std::to_string(i) + ": " + line;
    }
    return text;
}

TEST(Soak, SixtyFourProcessesAllToAll) {
    const int seconds = soak_seconds();
    const std::string run = "soak" + std::to_string(getpid());
    std::vector<std::unique_ptr<Child>> all;
    all.reserve(kProcesses);
    for (int i = 0; i < kProcesses; ++i) {
        all.push_back(std::make_unique<Child>(
            "soak", Arguments{"", "", "", std::to_string(i), std::to_string(kProcesses), run,
                              std::to_string(seconds)}));
    }
    std::uint64_t messages = 0, bytes = 0;
    long growth = 0;
    for (int i = 0; i < kProcesses; ++i) {
        const std::string said = all[i]->line(std::chrono::seconds(seconds + 60));
        std::istringstream words(said);
        std::string done;
        std::uint64_t its_messages = 0, its_bytes = 0, damaged = 0, errors = 0;
        long grown = 0, descriptors = 0;
        words >> done >> its_messages >> its_bytes >> damaged >> errors >> grown >> descriptors;
        ASSERT_EQ("done", done) << "process " << i << ": " << said << whatever_they_say(all);
        EXPECT_EQ(0u, damaged) << "process " << i;
        EXPECT_EQ(0u, errors) << "process " << i;
        EXPECT_EQ(0, descriptors) << "process " << i;
        EXPECT_LE(grown, kGrowthKib) << "process " << i;
        EXPECT_GT(its_messages, 0u) << "process " << i << " got nothing";
        messages += its_messages;
        bytes += its_bytes;
        growth = std::max(growth, grown);
    }
    for (const auto& child : all) child->go();
    for (const auto& child : all) EXPECT_EQ(0, child->wait());
    std::cout << kProcesses << " processes, " << seconds << " s: " << messages << " messages, "
              << (bytes >> 20) << " MiB, every byte right; own memory of a process grew by " << growth
              << " KiB at most" << std::endl;
}

/// An agent that may open few files, as where ulimit -n is small. What it has sent to processes and they have not taken
/// counts as theirs: as they connect all at once that is far more than their share.
TEST(FewFiles, ThirtyTwoProcessesAllToAll) {
    constexpr int kFewer = 32;
    constexpr rlim_t kFiles = 480;  // a process with its NIC costs six, and the user gets half
    const std::string run = "few" + std::to_string(getpid());
    const Variable place("VIADUCT_AGENT", "@viaduct-" + run);
    const pid_t agent = fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
        const rlimit few{kFiles, kFiles};
        setrlimit(RLIMIT_NOFILE, &few);
        const std::string address = std::getenv("VIADUCT_AGENT");
        execl(VIADUCT_TEST_VIPKAD, "vipkad", "--socket", address.c_str(), "--linger-ms", "-1", nullptr);
        _exit(127);
    }
    std::vector<std::unique_ptr<Child>> all;
    all.reserve(kFewer);
    for (int i = 0; i < kFewer; ++i)
        all.push_back(std::make_unique<Child>(
            "soak", Arguments{"", "", "", std::to_string(i), std::to_string(kFewer), run, "1"}));
    for (int i = 0; i < kFewer; ++i) {
        const std::string said = all[i]->line(std::chrono::seconds(60));
        EXPECT_EQ(0u, said.find("done ")) << "process " << i << ": " << said;
        if (said.empty()) break;
    }
    if (HasFailure()) std::cout << whatever_they_say(all) << std::endl;
    all.clear();
    kill(agent, SIGTERM);
    waitpid(agent, nullptr, 0);
}

}  // namespace
}  // namespace viaduct::integration
