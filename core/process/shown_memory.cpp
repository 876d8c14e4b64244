// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/shown_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <memory>
#include <utility>

#include "core/text/file_text.hpp"

namespace viaduct {

namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

std::string target_of(const std::string& path) {
    char text[256];
    const ssize_t n = ::readlink(path.c_str(), text, sizeof text);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

}  // namespace

Shown find_shown_memory(pid_t pid, const char* name, const std::function<bool(const Fd&)>& is_it, Fd* out) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    const Folder entries(::opendir(folder.c_str()), ::closedir);
    if (!entries) return errno == EACCES || errno == EPERM ? Shown::no_permission : Shown::no_process;
    const std::string wanted = std::string("/memfd:") + name;
    Shown result = Shown::no_memory;
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string path = folder + "/" + entry->d_name;
        const std::string target = target_of(path);
        if (target != wanted && target != wanted + " (deleted)") continue;
        // The file may be of any kind: opening it does not wait.
        Fd fd(above_stdio(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
        if (!fd.valid()) {
            result = Shown::no_permission;
        } else if (is_it(fd)) {
            *out = std::move(fd);
            return Shown::found;
        }
    }
    return result;
}

// The last of NSpid.
uint32_t own_number_of(pid_t pid) {
    std::istringstream status(text_of_file("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("NSpid:"))
            return static_cast<uint32_t>(std::strtoul(&line[line.find_last_of("\t ") + 1], nullptr, 10));
    return static_cast<uint32_t>(pid);
}

std::vector<pid_t> all_processes() {
    std::vector<pid_t> pids;
    const Folder entries(::opendir("/proc"), ::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        char* end = nullptr;
        const long pid = std::strtol(entry->d_name, &end, 10);
        if (*end == 0 && pid > 0) pids.push_back(static_cast<pid_t>(pid));
    }
    std::sort(pids.begin(), pids.end());
    return pids;
}

}  // namespace viaduct
