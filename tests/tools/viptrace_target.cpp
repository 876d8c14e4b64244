// SPDX-License-Identifier: BSD-2-Clause
// viptrace_target: a process to be recorded that does what its standard input says, a letter each, and answers with the
// letter: c a VIPL call; f a forked child that makes calls of its own; F one whose fork no handler is told of and
// that opens no NIC; s invalid bytes over its own record; x becomes cat(1).
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

VIP_NIC_HANDLE open_nic() {
    VIP_NIC_HANDLE nic = nullptr;
    return VipOpenNic("nic0", &nic) == VIP_SUCCESS ? nic : nullptr;
}

// Deregisters what is not registered: an event all the same.
void make_call(VIP_NIC_HANDLE nic) { VipDeregisterMem(nic, &nic, 1); }

int child(VIP_NIC_HANDLE parents, bool opens) {
    make_call(parents);
    if (!opens) return 0;
    const VIP_NIC_HANDLE own = open_nic();
    make_call(own);
    return own != nullptr ? 0 : 1;
}

// Past the library, as a program may do that has lost its way.
bool scribble() {
    std::ifstream maps("/proc/self/maps");
    bool done = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("viaduct-trace") == std::string::npos) continue;
        auto* const words = reinterpret_cast<volatile uint64_t*>(std::strtoull(line.c_str(), nullptr, 16));
        for (int i = 8; i < 1024; ++i) words[i] = ~uint64_t{0} / static_cast<unsigned>(i) * 0x9E37'79B9u;
        done = true;
    }
    return done;
}

}  // namespace

int main() {
    const VIP_NIC_HANDLE nic = open_nic();
    if (nic == nullptr) return 1;
    char order = 'r';
    do {
        bool well = true;
        if (order == 'c') make_call(nic);
        if (order == 's') well = scribble();
        if (order == 'f' || order == 'F') {
            const pid_t pid = order == 'f' ? ::fork() : ::_Fork();
            if (pid == 0) std::exit(child(nic, order == 'f'));
            int status = 1;
            well = pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
        }
        if (order == 'x') ::execlp("cat", "cat", static_cast<char*>(nullptr));
        if (!well) return 1;
        if (::write(1, &order, 1) != 1) return 1;
    } while (::read(0, &order, 1) == 1);
    VipCloseNic(nic);
    return 0;
}
