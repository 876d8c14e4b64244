// SPDX-License-Identifier: BSD-2-Clause
// Cards in hexadecimal. What comes back was written by another process: every character is checked.
#include "mpi-adi/rte/cards.hpp"

#include <algorithm>
#include <charconv>

namespace viaduct::rte {
namespace {

// "<number of pieces>." before the first digits; as many bytes as the longest such number takes.
constexpr size_t kHeadBytes = 6;
constexpr size_t kMostPieces = 9999;

std::string to_hex(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(bytes.size() * 2);
    for (const unsigned char byte : bytes) {
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
    }
    return hex;
}

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool append_bytes(std::string* bytes, std::string_view hex) {
    if (hex.size() % 2 != 0) return false;
    for (size_t i = 0; i < hex.size(); i += 2) {
        const int high = digit(hex[i]);
        const int low = digit(hex[i + 1]);
        if (high < 0 || low < 0) return false;
        *bytes += static_cast<char>(high * 16 + low);
    }
    return true;
}

}  // namespace

std::vector<std::string> split_card(std::string_view value, size_t limit) {
    const size_t per_piece = (limit - kHeadBytes) / 2;
    const size_t pieces = std::max<size_t>(1, (value.size() + per_piece - 1) / per_piece);
    if (pieces > kMostPieces) return {};
    std::vector<std::string> result;
    result.push_back(std::to_string(pieces) + "." + to_hex(value.substr(0, per_piece)));
    for (size_t i = 1; i < pieces; i++) result.push_back(to_hex(value.substr(i * per_piece, per_piece)));
    return result;
}

std::optional<std::string> join_card(const std::function<std::optional<std::string>(size_t)>& piece) {
    const auto first = piece(0);
    if (!first) return std::nullopt;
    const size_t dot = first->find('.');
    if (dot == std::string::npos) return std::nullopt;
    size_t pieces = 0;
    const auto [rest, bad] = std::from_chars(first->data(), first->data() + dot, pieces);
    if (bad != std::errc() || rest != first->data() + dot || pieces == 0 || pieces > kMostPieces)
        return std::nullopt;

    std::string value;
    if (!append_bytes(&value, std::string_view(*first).substr(dot + 1))) return std::nullopt;
    for (size_t i = 1; i < pieces; i++) {
        const auto next = piece(i);
        if (!next || !append_bytes(&value, *next)) return std::nullopt;
    }
    return value;
}

}  // namespace viaduct::rte
