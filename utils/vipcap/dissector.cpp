// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipcap/dissector.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "utils/common/error.hpp"
#include "utils/vipcap/pcap.hpp"

namespace viaduct::vipcap {

namespace {

// As Wireshark finds it.
std::string home_folder() {
    const char* const home = std::getenv("HOME");
    if (home != nullptr && *home == '/') return home;
    const passwd* const user = ::getpwuid(::getuid());
    if (user == nullptr) throw tools::ToolError("this user has no home folder");
    return user->pw_dir;
}

}  // namespace

std::string install_dissector() {
    const std::filesystem::path folder = std::filesystem::path(home_folder()) / ".local/lib/wireshark/plugins";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw tools::ToolError(fmt::format("{}: {}", folder.string(), error.message()));
    // A Wireshark that starts meanwhile sees the old one or the new one.
    std::string path = folder / "viaduct.lua";
    const std::string unfinished = fmt::format("{}.{}", path, ::getpid());
    File file(std::fopen(unfinished.c_str(), "wxe"));
    const bool written = file != nullptr && std::fputs(kDissectorText, file.get()) >= 0 && std::fflush(file.get()) == 0;
    file.reset();
    if (written && std::rename(unfinished.c_str(), path.c_str()) == 0) return path;
    const int why = errno;
    std::remove(unfinished.c_str());
    throw tools::ToolError(fmt::format("{}: {}", path, std::strerror(why)));
}

}  // namespace viaduct::vipcap
