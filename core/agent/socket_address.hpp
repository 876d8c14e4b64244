// SPDX-License-Identifier: BSD-2-Clause
// An agent's address in the form of the kernel. Used by both ends of the agent protocol.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace viaduct {

// "@name" becomes a name of the abstract name space (which is not terminated), everything else a path. False:
// too short or too long.
inline bool fill_socket_address(const std::string& text, sockaddr_un* address, socklen_t* length) {
    if (text.size() < 2 || text.size() >= sizeof(address->sun_path)) return false;
    *address = {};
    address->sun_family = AF_UNIX;
    std::memcpy(address->sun_path, text.data(), text.size());
    const bool abstract_name = text[0] == '@';
    if (abstract_name) address->sun_path[0] = '\0';
    *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (abstract_name ? 0 : 1));
    return true;
}

}  // namespace viaduct
