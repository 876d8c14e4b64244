// SPDX-License-Identifier: BSD-2-Clause
// What a process has open. A thread of the library may read a file of /proc at any moment: what is open for that moment
// only is no leak, and is not counted.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>

namespace viaduct::tests {

using OpenFiles = std::map<std::string, std::string>;  // what each descriptor is, by its number

inline OpenFiles open_files_now() {
    OpenFiles files;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code closed;
        files[one.path().filename()] = std::filesystem::read_symlink(one.path(), closed).string();
    }
    return files;
}

// Those that are open in each of some looks, without the descriptor of the look itself.
inline OpenFiles open_files() {
    OpenFiles files = open_files_now();
    for (int look = 0; look < 4; look++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const OpenFiles now = open_files_now();
        std::erase_if(files, [&](const auto& file) {
            const auto still = now.find(file.first);
            return still == now.end() || still->second != file.second || file.second.ends_with("/fd");
        });
    }
    return files;
}

}  // namespace viaduct::tests
