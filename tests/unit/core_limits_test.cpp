// SPDX-License-Identifier: BSD-2-Clause
// The table of time limits and the factor that stretches them.
#include "core/clock/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/config/config_text.hpp"

namespace viaduct {
namespace {

constexpr const char* kExpected = "VIADUCT_TEST_EXPECTED_FACTOR";

// What a setting is given in, in nanoseconds.
int64_t unit_of(const ConfigKey& row) { return std::string(row.key).ends_with("_ms") ? 1'000'000 : 1'000'000'000; }

const ConfigKey* setting_of(const TimeLimitRow& limit) {
    for (const ConfigKey& row : Config::keys())
        if (row.section == std::string(limit.section) && row.key == std::string(limit.name)) return &row;
    return nullptr;
}

// The exit status of this program's test IsTheExpectedOne, begun with that value of the variable.
int status_with(const std::string& value, int expected) {
    std::vector<std::string> words;
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string word(*e);
        if (!word.starts_with(std::string(kTimeFactorVariable) + "=") && !word.starts_with("GTEST_"))
            words.push_back(word);
    }
    words.push_back(std::string(kTimeFactorVariable) + "=" + value);
    words.push_back(std::string(kExpected) + "=" + std::to_string(expected));
    std::vector<char*> environment;
    for (std::string& word : words) environment.push_back(word.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe", filter = "--gtest_filter=TimeFactor.IsTheExpectedOne";
    char* arguments[] = {program.data(), filter.data(), nullptr};
    pid_t child = 0;
    if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()) != 0) return -1;
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string texts_of(const Config& config) {
    std::string texts;
    for (const ConfigProblem& problem : config.problems()) texts += problem.text + "\n";
    return texts;
}

// Of this process: status_with() begins others that have a factor which they expect.
TEST(TimeFactor, IsTheExpectedOne) {
    const char* text = std::getenv(kExpected);
    const int expected = text == nullptr ? time_factor() : std::atoi(text);
    EXPECT_EQ(time_factor(), expected);
    EXPECT_EQ(limit_ns(TimeLimit::accept), int64_t{8'000'000'000} * expected);
    EXPECT_EQ(Config().get_int("agent", "confirm_ms"), 5000 * expected);
    EXPECT_EQ(Config().get_int("agent", "linger_ms"), 1000) << "nothing fails after it: it is no limit";
    EXPECT_EQ(Config::parse("[agent]\nconfirm_ms = 70\n", "f").get_int("agent", "confirm_ms"), 70)
        << "a value that the user gives is not stretched";
    if (text == nullptr) return;
    ::setenv(kTimeFactorVariable, "9", 1);
    EXPECT_EQ(time_factor(), expected) << "the variable is read at the start only";
}

TEST(TimeFactor, IsReadFromTheEnvironment) {
    EXPECT_EQ(status_with("1", 1), 0);
    EXPECT_EQ(status_with("7", 7), 0);
    EXPECT_EQ(status_with("1000", 1000), 0);
}

TEST(TimeFactor, IsOneWhereTheVariableIsWrong) {
    for (const char* wrong : {"", "0", "1001", "-2", "+2", " 2", "2.5", "2x", "99999999999999999999"})
        EXPECT_EQ(status_with(wrong, 1), 0) << wrong;
}

TEST(TimeFactor, IsReportedWhereTheVariableIsWrong) {
    const char* before = std::getenv(kTimeFactorVariable);
    const std::string kept = before == nullptr ? "" : before;
    ::setenv(kTimeFactorVariable, "2x", 1);
    const Config wrong = Config::load();
    ::setenv(kTimeFactorVariable, "2", 1);
    const Config right = Config::load();
    before == nullptr ? ::unsetenv(kTimeFactorVariable) : ::setenv(kTimeFactorVariable, kept.c_str(), 1);
    EXPECT_THAT(texts_of(wrong),
                ::testing::HasSubstr("VIADUCT_TIME_FACTOR=2x is not a whole number from 1 to 1000; ignored"));
    EXPECT_THAT(texts_of(right), ::testing::Not(::testing::HasSubstr(kTimeFactorVariable)));
}

TEST(TimeLimits, HaveNamesMeaningsAndPages) {
    std::set<std::string> names;
    for (const TimeLimitRow& row : kTimeLimits) {
        EXPECT_GT(row.ns, 0) << row.name;
        EXPECT_GT(std::string(row.meaning).size(), 10u) << row.name;
        EXPECT_FALSE(std::string(row.page).empty()) << row.name;
        EXPECT_TRUE(names.insert(std::string(row.section == nullptr ? "" : row.section) + "." + row.name).second)
            << row.name << " stands there twice";
    }
}

TEST(TimeLimits, OfSettingsAreTheirDefaults) {
    for (const TimeLimitRow& limit : kTimeLimits) {
        if (limit.section == nullptr) continue;
        const ConfigKey* const row = setting_of(limit);
        ASSERT_NE(row, nullptr) << limit.section << "." << limit.name;
        EXPECT_EQ(parse_number(row->type, row->fallback).value_or(0) * unit_of(*row), limit.ns) << limit.name;
        const ConfigValue value = Config().value(limit.section, limit.name);
        EXPECT_EQ(parse_number(row->type, value.text).value_or(0) * unit_of(*row), limit.ns * time_factor())
            << limit.name;
        EXPECT_EQ(wrong_value(*row, value.text), "") << limit.name;
    }
}

}  // namespace
}  // namespace viaduct
