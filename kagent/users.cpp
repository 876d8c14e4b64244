// SPDX-License-Identifier: BSD-2-Clause
#include "kagent/users.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "core/process/peer_process.hpp"

namespace viaduct::kagent {

namespace {

constexpr uint64_t kAllUsers = 4294967295;  // the last number means none

std::string text_of_file(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

Users::Users() : Users(text_of_file("/proc/self/uid_map"), text_of_file("/proc/sys/kernel/overflowuid")) {}

Users::Users(const std::string& map, const std::string& overflow) {
    std::istringstream lines(map);
    uint64_t inside = 0, outside = 0, count = 0, all = 0;
    while (lines >> inside >> outside >> count) all += count;
    if (all >= kAllUsers) return;
    uint64_t number = 65534;
    std::istringstream(overflow) >> number;
    overflow_ = static_cast<uid_t>(number);
}

bool Users::knows(int socket, uid_t uid) const {
    if (knows(uid)) return true;
    if (uid != ::geteuid()) return false;
    // We have no number ourselves, and no rights over others: only our own user's processes take signals of
    // ours.
    bool ended = false;
    const Fd process = peer_process(socket, 0, &ended);
    return process.valid() && ::syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0) == 0;
}

}  // namespace viaduct::kagent
