// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/last_thread.hpp"

#include <signal.h>

#include <cstdlib>

#include "vipl/thread.hpp"

namespace viaduct::vipl {

void take_signals() {
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

bool end_process() {
    const auto leave = [](void*) {
        take_signals();
        std::exit(0);
    };
    return start_thread("vipl-exit", kDefaultStack, leave, nullptr) == Status::ok;
}

}  // namespace viaduct::vipl
