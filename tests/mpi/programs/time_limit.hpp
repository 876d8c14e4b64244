// SPDX-License-Identifier: BSD-2-Clause
// A process that waits for ever ends by SIGALRM, before the test's time is over: the launcher then says which one it
// was. Where the machine is slow when its seconds are over, it gets so many times as many.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "../../slowness.hpp"

namespace time_limit {

inline unsigned seconds = 0;

inline void passed(int) {
    const int before = errno;
    constexpr double kMost = 2.5;  // ctest ends a test after three times its seconds
    const auto more = static_cast<unsigned>(seconds * (std::min(viaduct::tests::slowness(), kMost) - 1));
    std::signal(SIGALRM, SIG_DFL);
    if (more == 0)
        std::raise(SIGALRM);  // once this function has returned
    else
        ::alarm(more);
    errno = before;
}

inline void begin(unsigned most) {
    seconds = most;
    struct sigaction action {};
    action.sa_handler = passed;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, nullptr);
    ::alarm(most);
}

}  // namespace time_limit
