// SPDX-License-Identifier: BSD-2-Clause
// A new folder for the files of one test, below the folder of GoogleTest's temporary files. The destructor removes it
// with all that is in it. Of C++ tests; tests/temporary.py is for the others.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace viaduct {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = testing::TempDir() + "viaduct-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code stays;
        std::filesystem::remove_all(path_, stays);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace viaduct
