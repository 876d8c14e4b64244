// SPDX-License-Identifier: BSD-2-Clause
// The rows of a GoogleTest program are its cases. TEST_ROWS names the cases to run; GoogleTest names the failed cases.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rows.hpp"

namespace viaduct::tests {

// Sets the filter to the cases that TEST_ROWS names, whichever share of all cases they belong to. Called after
// InitGoogleTest, which registers the cases. False, and a message, where TEST_ROWS has a name that no case has.
inline bool choose_cases() {
    if (GTEST_FLAG_GET(list_tests)) return true;
    const std::vector<std::string> wanted = take_wanted_rows();
    if (wanted.empty()) return true;
    std::vector<std::string> names;
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const ::testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int k = 0; k < suite.total_test_count(); ++k)
            names.push_back(std::string(suite.name()) + "." + suite.GetTestInfo(k)->name());
    }
    if (report_unknown_rows(wanted, names)) return false;
    std::string filter;
    for (const std::string& row : wanted) filter += (filter.empty() ? "" : ":") + row;
    GTEST_FLAG_SET(filter, filter);
    ::unsetenv("GTEST_TOTAL_SHARDS");
    ::unsetenv("GTEST_SHARD_INDEX");
    return true;
}

}  // namespace viaduct::tests
