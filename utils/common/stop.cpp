// SPDX-License-Identifier: BSD-2-Clause
#include "utils/common/stop.hpp"

#include <atomic>
#include <csignal>

namespace viaduct::tools {

namespace {
std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // set by a signal handler
}  // namespace

void catch_stop() {
    struct sigaction action = {};
    action.sa_handler = [](int) { asked.store(true, std::memory_order_relaxed); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

bool stopped() { return asked.load(std::memory_order_relaxed); }

void stop() { asked.store(true, std::memory_order_relaxed); }

}  // namespace viaduct::tools
