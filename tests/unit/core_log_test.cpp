// SPDX-License-Identifier: BSD-2-Clause
// The log: silent unless asked, one whole line for each message.
#include "core/log/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace viaduct {
namespace {

using ::testing::HasSubstr;

class Log : public ::testing::Test {
protected:
    void SetUp() override { before_ = log::level(); }
    void TearDown() override { log::set_level(before_); }
    log::Level before_ = log::Level::off;
};

TEST_F(Log, IsSilentWhenOffAndNeverOnStandardOutput) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    log::set_level(log::Level::off);
    VIADUCT_LOG(error, "test", "not to be seen");
    log::set_level(log::Level::warn);
    VIADUCT_LOG(info, "test", "not to be seen either");
    VIADUCT_LOG(warn, "test", "seen %d", 42);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(text, HasSubstr("warn test: seen 42\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("not to be seen")));
}

TEST_F(Log, CutsLongLinesAndKeepsErrno) {
    ::testing::internal::CaptureStderr();
    log::set_level(log::Level::error);
    errno = EXDEV;
    VIADUCT_LOG(error, "test", "%s", std::string(5000, 'x').c_str());
    EXPECT_EQ(errno, EXDEV);
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_LT(text.size(), 1100u);
}

TEST_F(Log, WritesWholeLinesFromManyThreads) {
    ::testing::internal::CaptureStderr();
    log::set_level(log::Level::debug);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 200; ++i) VIADUCT_LOG(debug, "test", "a line with some words in it");
        });
    }
    for (auto& t : threads) t.join();
    const std::string text = ::testing::internal::GetCapturedStderr();
    size_t lines = 0, whole = 0;
    for (size_t at = 0; at < text.size(); ++lines) {
        const size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        if (line.rfind("viaduct[", 0) == 0 && line.find("in it") == line.size() - 5) ++whole;
        at = end + 1;
    }
    EXPECT_EQ(lines, 800u);
    EXPECT_EQ(whole, 800u);
}

}  // namespace
}  // namespace viaduct
