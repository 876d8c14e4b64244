// SPDX-License-Identifier: BSD-2-Clause
#include "core/text/end_address.hpp"

#include <fmt/format.h>

namespace viaduct {

std::string text_of(const EndAddress& end) {
    std::string out;
    for (size_t i = 0; i < kNicAddressBytes; ++i)
        out += fmt::format("{}{:02x}", i == 0 ? "" : ":", end.host.bytes[i]);
    out += '/';
    for (size_t i = 0; i < end.discriminator_len; ++i) {
        const uint8_t byte = end.discriminator[i];
        out += byte > ' ' && byte < 127 ? std::string(1, static_cast<char>(byte)) : fmt::format("\\{:02x}", byte);
    }
    return out;
}

}  // namespace viaduct
