// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/protocol.hpp"

namespace viaduct::acenic {

std::string engine_address(const std::string& short_port_name, uint32_t user) {
    return "@viaduct-acenicd-" + std::to_string(user) + "-" + short_port_name;
}

bool take_looks(int socket, std::vector<Fd>* files) {
    for (int i = 0; i < 8; ++i) {
        char one = 0;
        const Status got = take_message(socket, &one, sizeof one, files);
        if (got != Status::ok || !files->empty()) return got == Status::not_done;
    }
    return true;
}

}  // namespace viaduct::acenic
