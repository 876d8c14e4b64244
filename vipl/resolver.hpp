// SPDX-License-Identifier: BSD-2-Clause
// Questions to the system's resolver. It may wait for servers that do not answer for longer than any call of VIPL may
// take, so it is called on a thread of its own, which is left behind when its time is over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "viaduct/provider.hpp"

namespace viaduct::vipl {

struct IpAddress {
    std::array<uint8_t, 16> bytes{};
    uint32_t length = 0;  // 4 or 16
};

// The addresses of a host, in the resolver's order. None: unknown, or no answer in time. Throws std::bad_alloc also
// if the thread that asks ran out of memory, and std::system_error if that thread cannot be started.
std::vector<IpAddress> resolve(const char* name, Deadline);

}  // namespace viaduct::vipl
