// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/quota.hpp"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace viaduct::mpi {
namespace {

std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// "200000 100000" or "max 100000" in cpu.max, or the two numbers in files of their own. 0: no limit here.
double limit_in(const std::string& folder, bool second_version) {
    double quota = 0, period = 0;
    if (second_version) {
        std::istringstream words(content(folder + "/cpu.max"));
        if (!(words >> quota >> period)) return 0;
    } else {
        std::istringstream(content(folder + "/cpu.cfs_quota_us")) >> quota;
        std::istringstream(content(folder + "/cpu.cfs_period_us")) >> period;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

std::string name_of(const std::string& folder) {
    struct stat status = {};
    if (::stat(folder.c_str(), &status) != 0) return {};
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

void look(const std::string& mount, std::string path, bool second_version, Quota* tightest) {
    for (;;) {
        const std::string folder = mount + path;
        const double limit = limit_in(folder, second_version);
        if (limit > 0 && (tightest->processors == 0 || limit < tightest->processors)) {
            tightest->processors = limit;
            tightest->group = name_of(folder);
        }
        const size_t slash = path.rfind('/');
        if (path.empty() || slash == std::string::npos) return;
        path.resize(slash);
    }
}

bool lists(const std::string& controllers, const std::string& name) {
    return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

// Lines "number:controllers:path"; version 2 is number 0 without controllers.
Quota quota_of(const std::string& text, const std::string& root) {
    Quota tightest;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty()) {
            look(root, path, true, &tightest);
        } else if (lists(controllers, "cpu")) {
            look(root + "/cpu", path, false, &tightest);
        }
    }
    return tightest;
}

Quota own_quota() { return quota_of(content("/proc/self/cgroup"), "/sys/fs/cgroup"); }

}  // namespace viaduct::mpi
