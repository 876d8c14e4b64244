// SPDX-License-Identifier: BSD-2-Clause
// viaduct_fault [--nic NAME] [gtest options]: processes are killed and stopped in the middle of everything.
// --role is for the suite itself, which starts this program again for the victims.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "fault.hpp"

int main(int argc, char** argv) {
    const char* from_environment = std::getenv("VIADUCT_TEST_NIC");
    viaduct::conformance::options().nic = from_environment != nullptr ? from_environment : "/dev/via_eth0";
    std::string role;
    viaduct::fault::Arguments arguments;
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--nic") == 0 && has_value) {
            viaduct::conformance::options().nic = argv[++i];
        } else if (std::strcmp(argv[i], "--role") == 0 && has_value) {
            role = argv[++i];
        } else if (std::strcmp(argv[i], "--with") == 0) {
            arguments.assign(argv + i + 1, argv + argc);
            break;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
    argv[argc] = nullptr;
    if (!role.empty()) {
        // The suite may be killed; its victims must not stay.
        if (role != "guardian") ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        return viaduct::fault::play_role(role, arguments);
    }
    std::signal(SIGPIPE, SIG_IGN);  // telling a victim that is gone is an error, not the end
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
