// SPDX-License-Identifier: BSD-2-Clause
// What a request of another version is answered with. It is no frame of any version, and stays as it is in all
// of them: byte 0 is 0, 1 is 1, 2 the version that is spoken here, 3 the one that came, 4 to 7 CRC32C of it all
// (these as zeros), then the first 64 bytes of what came. In every version byte 0 of a frame is the version,
// byte 1 is 1 or 2 for a request, and its sender's link id lies at 8. Used by Node and by acenic's engine
// process.
#pragma once

#include <cstdint>
#include <span>

#include "providers/wire/format.hpp"

namespace viaduct::wire {

inline constexpr uint32_t kVersionAnswerBytes = 72;

// A request of a version that is not ours.
bool asks_for_version(std::span<const std::byte> frame);
void make_version_answer(std::span<const std::byte> request, std::byte* to);

struct VersionAnswer {
    uint8_t version = 0;  // of the other side
    uint32_t source = 0;  // link of our request
    uint64_t nonce = 0;   // and its nonce
};
bool is_version_answer(std::span<const std::byte> frame);
// False: it is damaged, or answers nothing that we send.
bool read_version_answer(std::span<const std::byte> frame, VersionAnswer* out);

}  // namespace viaduct::wire
