// SPDX-License-Identifier: BSD-2-Clause
// The rows of a test that runs many of them. TEST_ROWS names the rows to run, one a line; the line FAILED ROWS names
// the failed rows, and a run repeats these and not the whole test. rows.py is the same for scripts.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace viaduct::tests {

// The names in TEST_ROWS, which is unset then: the programs that a test starts do not inherit it.
inline std::vector<std::string> take_wanted_rows() {
    const char* text = std::getenv("TEST_ROWS");
    std::istringstream lines(text != nullptr ? text : "");
    ::unsetenv("TEST_ROWS");
    std::vector<std::string> wanted;
    for (std::string row; std::getline(lines, row);) {
        if (!row.empty()) wanted.push_back(row);
    }
    return wanted;
}

// Prints the rows of `wanted` that are not in `names`; whether there are any.
inline bool report_unknown_rows(const std::vector<std::string>& wanted, const std::vector<std::string>& names) {
    bool found = false;
    for (const std::string& row : wanted) {
        if (std::find(names.begin(), names.end(), row) != names.end()) continue;
        std::fprintf(stderr, "TEST_ROWS: this test has no row %s\n", row.c_str());
        found = true;
    }
    return found;
}

// The rows of `names` that TEST_ROWS names, or all of them without TEST_ROWS. Nothing, and a message, where TEST_ROWS
// has a name that is not in `names`.
inline std::optional<std::vector<std::string>> chosen_rows(const std::vector<std::string>& names) {
    std::vector<std::string> wanted = take_wanted_rows();
    if (wanted.empty()) return names;
    if (report_unknown_rows(wanted, names)) return std::nullopt;
    return wanted;
}

// Names the failed rows of a test that has run all the other rows to their end.
inline void report_failed_rows(const std::vector<std::string>& failed) {
    if (failed.empty()) return;
    std::string line;
    for (const std::string& row : failed) {
        line += line.empty() ? "\"" : ", \"";
        for (const char c : row) {
            if (c == '"' || c == '\\') line += '\\';
            line += c;
        }
        line += '"';
    }
    std::printf("FAILED ROWS: [%s]\n", line.c_str());
    std::fflush(stdout);
}

}  // namespace viaduct::tests
