// SPDX-License-Identifier: BSD-2-Clause
// viaduct_integration --gtest_filter=Soak.* [--seconds N]: 64 processes, everybody with everybody, messages
// of random sizes, every byte looked at, and no memory that grows.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

constexpr int kProcesses = 64;
constexpr long kGrowthKib =
    512;  // malloc's and the kernel's own rounding; what leaks with each message is far more

/// Of all processes what they have said by now. Where one fails the others wait for it, and the one that is asked first
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

}  // namespace
}  // namespace viaduct::integration
