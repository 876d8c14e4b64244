// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/auth.hpp"

#include <cstring>

#include "providers/wire/bytes.hpp"
#include "providers/wire/header_words.hpp"

namespace viaduct::wire {

namespace {

int value_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

uint64_t mixed(const Key& key, char which, uint64_t a, uint64_t b) {
    unsigned char in[24] = "viaduct";
    in[7] = static_cast<unsigned char>(which);
    a = on_wire(a);
    b = on_wire(b);
    std::memcpy(in + 8, &a, 8);
    std::memcpy(in + 16, &b, 8);
    SipHash hash(key);
    hash.add(in, sizeof in);
    return hash.finish();
}

}  // namespace

bool read_key(const char* text, Key* out) {
    while (is_space(*text)) ++text;
    uint64_t half[2] = {};
    for (int byte = 0; byte < 16; ++byte, text += 2) {
        const int high = value_of(text[0]), low = high < 0 ? -1 : value_of(text[1]);
        if (low < 0) return false;
        half[byte / 8] |= static_cast<uint64_t>(high << 4 | low) << byte % 8 * 8;
    }
    while (is_space(*text)) ++text;
    if (*text != '\0') return false;
    *out = {half[0], half[1]};
    return true;
}

Key key_of_direction(const Key& common, uint64_t from_pass, uint64_t to_pass) {
    return {mixed(common, '1', from_pass, to_pass), mixed(common, '2', from_pass, to_pass)};
}

uint64_t tag_of(const Key& key, const Header& header, uint64_t whole_sequence, const std::byte* fields,
                std::span<const Piece> tail) {
    Header h = header;
    h.pass = whole_sequence;
    h.flags |= kFlagTagged;
    HeaderWords words;
    make_words(h, words);
    uint32_t length = h.length;
    for (const Piece& piece : tail) length -= piece.bytes;
    SipHash hash(key);
    hash.add(words, sizeof words);
    hash.add(fields, length);
    for (const Piece& piece : tail) hash.add(piece.at, piece.bytes);
    return hash.finish();
}

}  // namespace viaduct::wire
