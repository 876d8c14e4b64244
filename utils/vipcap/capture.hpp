// SPDX-License-Identifier: BSD-2-Clause
// Packets of an interface as they come and go (AF_PACKET): IPv4 with UDP, and the Ethernet type of VI over packets. The
// kernel drops all others. Needs CAP_NET_RAW.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "utils/vipcap/frame.hpp"

namespace viaduct::vipcap {

// Until take() is false or the tool is to stop; ready() is called when it listens. How many packets the kernel had to
// drop. Throws ToolError where it cannot be had.
uint32_t capture(const std::string& interface, const std::function<void()>& ready,
                 const std::function<bool(Bytes packet, int64_t ns_since_1970)>& take);

}  // namespace viaduct::vipcap
