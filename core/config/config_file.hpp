// SPDX-License-Identifier: BSD-2-Clause
// A configuration file as a flat list of settings: the only place that reads TOML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

struct FileSetting {
    std::string section;
    std::string key;
    std::string text;
    unsigned line = 0;
};

struct FileContent {
    std::vector<FileSetting> settings;
    std::vector<std::string> problems;  // each with its line
};

FileContent read_toml(std::string_view text, std::string_view origin);

}  // namespace viaduct
