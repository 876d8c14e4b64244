// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/message.hpp"

#include <endian.h>

#include <cstring>

namespace viaduct::verbs {

void write_message(const Message& m, std::byte* out) {
    std::memset(out, 0, kMessageBytes);
    out[0] = static_cast<std::byte>(m.kind);
    const uint32_t small[3] = {htobe32(m.handle), htobe32(m.key), htobe32(m.flags)};
    const uint64_t large[2] = {htobe64(m.address), htobe64(m.length)};
    std::memcpy(out + 4, small, sizeof small);
    std::memcpy(out + 16, large, sizeof large);
}

bool read_message(const std::byte* in, uint32_t bytes, Message* out) {
    if (bytes != kMessageBytes) return false;
    uint32_t small[3];
    uint64_t large[2];
    std::memcpy(small, in + 4, sizeof small);
    std::memcpy(large, in + 16, sizeof large);
    out->kind = static_cast<MessageKind>(in[0]);
    out->handle = be32toh(small[0]);
    out->key = be32toh(small[1]);
    out->flags = be32toh(small[2]);
    out->address = be64toh(large[0]);
    out->length = be64toh(large[1]);
    return out->kind >= MessageKind::ask && out->kind <= MessageKind::alive;
}

}  // namespace viaduct::verbs
