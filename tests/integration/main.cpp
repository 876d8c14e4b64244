// SPDX-License-Identifier: BSD-2-Clause
// viaduct_integration [--nic NAME] [--seconds N] [gtest options]: many VIs, many regions, few processors, two
// NICs, two users, silence, and the soak, whose length --seconds is.
#include <sys/prctl.h>

#include <csignal>
#include <cstring>

#include "roles.hpp"

namespace viaduct::integration {

int& soak_seconds() {
    static int seconds = 15;
    return seconds;
}

}  // namespace viaduct::integration

int main(int argc, char** argv) {
    using namespace viaduct;
    if (argc > 2 && std::strcmp(argv[1], "--seconds") == 0) {
        integration::soak_seconds() = std::stoi(argv[2]);
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    return conformance::run_suite(
        argc, argv, [](const std::string& role, const integration::Arguments& arguments) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the suite may be killed; its roles must not stay
            return integration::play_role(role, arguments);
        });
}
