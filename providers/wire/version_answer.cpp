// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/version_answer.hpp"

#include <algorithm>
#include <cstring>

#include "providers/wire/bytes.hpp"
#include "providers/wire/crc32c.hpp"

namespace viaduct::wire {

namespace {

constexpr uint32_t kQuoteAt = 8, kQuoteBytes = kVersionAnswerBytes - kQuoteAt;

bool is_request(uint8_t kind) {
    return kind == static_cast<uint8_t>(Kind::request) || kind == static_cast<uint8_t>(Kind::peer_request);
}

uint32_t check_of(const std::byte* answer) {
    const std::byte zeros[4] = {};
    return crc32c(answer + kQuoteAt, kQuoteBytes, crc32c(zeros, sizeof zeros, crc32c(answer, 4)));
}

}  // namespace

bool asks_for_version(std::span<const std::byte> frame) {
    return frame.size() >= kQuoteBytes && load8(frame.data()) != kVersion && load8(frame.data()) != 0 &&
           is_request(load8(frame.data() + 1));
}

void make_version_answer(std::span<const std::byte> request, std::byte* to) {
    store8(to, 0);
    store8(to + 1, 1);
    store8(to + 2, kVersion);
    store8(to + 3, load8(request.data()));
    std::memcpy(to + kQuoteAt, request.data(), kQuoteBytes);
    store32(to + 4, check_of(to));
}

bool is_version_answer(std::span<const std::byte> frame) {
    return frame.size() >= kVersionAnswerBytes && load8(frame.data()) == 0 && load8(frame.data() + 1) == 1;
}

bool read_version_answer(std::span<const std::byte> frame, VersionAnswer* out) {
    const std::byte* p = frame.data();
    const std::byte* quote = p + kQuoteAt;
    if (load32(p + 4) != check_of(p) || load8(p + 3) != kVersion || load8(quote) != kVersion ||
        !is_request(load8(quote + 1)))
        return false;
    out->version = load8(p + 2);
    out->source = load32(quote + kSourceAt);
    out->nonce = load64(quote + kHeaderBytes);
    return true;
}

}  // namespace viaduct::wire
