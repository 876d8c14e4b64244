// SPDX-License-Identifier: BSD-2-Clause
// viaduct_integration [--nic NAME] [gtest options]: many VIs, many regions, few processors, two NICs,
// silence.
#include <sys/prctl.h>

#include <csignal>

#include "roles.hpp"

int main(int argc, char** argv) {
    return viaduct::conformance::run_suite(
        argc, argv, [](const std::string& role, const viaduct::integration::Arguments& arguments) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the suite may be killed; its roles must not stay
            return viaduct::integration::play_role(role, arguments);
        });
}
