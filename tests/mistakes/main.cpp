// SPDX-License-Identifier: BSD-2-Clause
// viaduct_mistakes [--table] [ROW...]: makes the mistakes, all or those named, here or in TEST_ROWS, and compares what
// is said. --table writes each row as three columns with tabs between them: name, mistake, text.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "../report/rows.hpp"
#include "rows.hpp"

namespace {

bool is_wanted(const mistakes::Row& row, int argc, char** argv, int first) {
    for (int i = first; i < argc; ++i)
        if (std::strcmp(argv[i], row.name) == 0) return true;
    return first == argc;
}

// Whether the text has all words; says what lacks.
bool judge(const mistakes::Row& row, const std::string& text) {
    bool good = !row.words.empty();
    for (const char* word : row.words) {
        if (text.find(word) != std::string::npos) continue;
        good = false;
        std::printf("RED %s: \"%s\" is not in: %s\n", row.name, word, text.c_str());
    }
    if (good) std::printf("ok  %s\n", row.name);
    return good;
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a row that hangs is the one behind the last line
    const bool table = argc > 1 && std::strcmp(argv[1], "--table") == 0;
    const int first = table ? 2 : 1;
    mistakes::Rows rows;
    std::vector<std::string> names;
    for (const auto& part : {mistakes::rows_objects(), mistakes::rows_memory(), mistakes::rows_connect(),
                             mistakes::rows_send(), mistakes::rows_rdma()}) {
        for (const mistakes::Row& row : part) {
            if (!is_wanted(row, argc, argv, first)) continue;
            rows.push_back(row);
            names.emplace_back(row.name);
        }
    }
    const auto chosen = viaduct::tests::chosen_rows(names);
    if (!chosen) return 1;
    std::vector<std::string> red;
    int made = 0;
    for (const mistakes::Row& row : rows) {
        if (std::find(chosen->begin(), chosen->end(), row.name) == chosen->end()) continue;
        std::string text;
        try {
            text = row.make();
        } catch (const std::exception& error) {
            text = std::string("the row itself failed: ") + error.what();
        }
        ++made;
        if (table) {
            std::printf("%s\t%s\t%s\n", row.name, row.mistake, text.c_str());
        } else if (!judge(row, text)) {
            red.emplace_back(row.name);
        }
    }
    if (!table) std::printf("%d mistakes, %zu not told as they should be\n", made, red.size());
    viaduct::tests::report_failed_rows(red);
    return red.empty() && made != 0 ? 0 : 1;
}
