// SPDX-License-Identifier: BSD-2-Clause
// Opens a NIC for opens.py and writes what the library says of it: "open: VIP_SUCCESS", or VipxLastError.
//
//   opens [--first NIC] [--files N | --file-bytes N | --memory N] [--wait] [--hold] NIC
//
// --first: a NIC that is opened before, so that limits set after it meet the other one alone. --files: so many
// descriptors may be opened beyond those that are open. --memory: so many bytes more may be mapped. --wait: then
// VipConnectWait, which ends early where no daemon can be had. --hold: the NIC stays open until standard input ends.
#include <sys/resource.h>
#include <unistd.h>
#include <viaduct/ext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// The next descriptor that the kernel gives: all below are open.
rlim_t next_descriptor() {
    const int fd = ::dup(STDOUT_FILENO);
    ::close(fd);
    return static_cast<rlim_t>(fd);
}

rlim_t mapped_bytes() {
    unsigned long pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "re");
    const bool read = file != nullptr && std::fscanf(file, "%lu", &pages) == 1;
    if (file != nullptr) std::fclose(file);
    return read ? pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void limit(int what, rlim_t most) {
    struct rlimit now {};
    ::getrlimit(what, &now);
    now.rlim_cur = most;
    if (::setrlimit(what, &now) != 0) std::perror("setrlimit");
}

bool tell(const char* call, VIP_RETURN result) {
    char text[1024];
    if (result == VIP_SUCCESS)
        std::printf("%s: VIP_SUCCESS\n", call);
    else if (VipxLastError(nullptr, text, sizeof text) == VIP_SUCCESS)
        std::printf("%s\n", text);
    else
        std::printf("%s: no reason is given\n", call);
    std::fflush(stdout);
    return result == VIP_SUCCESS;
}

bool wait_for_request(VIP_NIC_HANDLE nic) {
    VIP_NIC_ATTRIBUTES about{};
    if (!tell("VipQueryNic", VipQueryNic(nic, &about))) return false;
    alignas(VIP_NET_ADDRESS) char local[128] = {}, remote[128] = {};
    const VIP_UINT16 lengths[2] = {about.NicAddressLen, 1};
    std::memcpy(local, lengths, sizeof lengths);
    std::memcpy(local + sizeof lengths, about.LocalNicAddress, about.NicAddressLen);
    local[sizeof lengths + about.NicAddressLen] = 'x';
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    return tell("VipConnectWait",
                VipConnectWait(nic, reinterpret_cast<VIP_NET_ADDRESS*>(local), 30000,
                               reinterpret_cast<VIP_NET_ADDRESS*>(remote), &attributes, &connection));
}

}  // namespace

int main(int argc, char** argv) {
    const char* first = nullptr;
    bool waits = false, holds = false;
    int resource = -1;
    rlim_t amount = 0;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; ++at) {
        const std::string option = argv[at];
        if (option == "--wait" || option == "--hold") {
            (option == "--wait" ? waits : holds) = true;
            continue;
        }
        const char* const value = ++at < argc ? argv[at] : "";
        if (option == "--first") {
            first = value;
            continue;
        }
        resource = option == "--files" ? RLIMIT_NOFILE : option == "--memory" ? RLIMIT_AS : RLIMIT_FSIZE;
        amount = std::strtoull(value, nullptr, 10);
    }
    if (at + 1 != argc) return 2;

    VIP_NIC_HANDLE nic = nullptr;
    if (first != nullptr && !tell("VipOpenNic", VipOpenNic(first, &nic))) return 2;
    if (resource == RLIMIT_NOFILE) amount += next_descriptor();
    if (resource == RLIMIT_AS) amount += mapped_bytes();
    if (resource >= 0) limit(resource, amount);
    if (!tell("VipOpenNic", VipOpenNic(argv[at], &nic))) return 1;
    if (waits && !wait_for_request(nic)) return 1;
    if (holds) {
        char byte;
        while (::read(STDIN_FILENO, &byte, 1) > 0) {
        }
    }
    return VipCloseNic(nic) == VIP_SUCCESS ? 0 : 1;
}
