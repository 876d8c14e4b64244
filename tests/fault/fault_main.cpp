// SPDX-License-Identifier: BSD-2-Clause
// viaduct_fault [--nic NAME] [--rounds N] [--seed S] [gtest options]: processes are killed and stopped in the
// middle of everything.
// --rounds and --seed are the killer's.
#include <sys/prctl.h>

#include <csignal>
#include <cstring>

#include "fault.hpp"

namespace viaduct::fault {

KillerOptions& killer_options() {
#if defined(__SANITIZE_ADDRESS__)
    static KillerOptions options{40};
#else
    static KillerOptions options{200};
#endif
    return options;
}

}  // namespace viaduct::fault

int main(int argc, char** argv) {
    using namespace viaduct;
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--with") == 0) {  // the rest is a role's
            while (i < argc) argv[kept++] = argv[i++];
        } else if (std::strcmp(argv[i], "--rounds") == 0 && has_value) {
            fault::killer_options().rounds = std::stoi(argv[++i]);
        } else if (std::strcmp(argv[i], "--seed") == 0 && has_value) {
            fault::killer_options().seed = std::stoull(argv[++i]);
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = nullptr;
    return conformance::run_suite(kept, argv, [](const std::string& role, const fault::Arguments& arguments) {
        // The suite may be killed; its victims must not stay.
        if (role != "guardian") ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        return fault::play_role(role, arguments);
    });
}
