// SPDX-License-Identifier: BSD-2-Clause
// viaduct_fault [--nic NAME] [gtest options]: processes are killed and stopped in the middle of everything.
#include <sys/prctl.h>

#include <csignal>

#include "fault.hpp"

int main(int argc, char** argv) {
    return viaduct::conformance::run_suite(
        argc, argv, [](const std::string& role, const viaduct::fault::Arguments& arguments) {
            // The suite may be killed; its victims must not stay.
            if (role != "guardian") ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            return viaduct::fault::play_role(role, arguments);
        });
}
