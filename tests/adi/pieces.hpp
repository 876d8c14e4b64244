// SPDX-License-Identifier: BSD-2-Clause
// Data with gaps for the tests: layouts of any pieces, and buffers that know what should be in them.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "cases.hpp"

namespace viaduct::adi_test {

// Pieces anywhere in a buffer, in any order.
struct Pieces : mpip_type_t {
    struct One {
        size_t at, bytes;
    };
    std::vector<One> all;
    size_t total = 0, extent = 0;

    template <class Visit>
    void each(size_t offset, size_t bytes, Visit&& visit) const {
        for (const One& one : all) {
            if (offset >= one.bytes) {
                offset -= one.bytes;
                continue;
            }
            const size_t now = std::min(one.bytes - offset, bytes);
            if (now == 0) return;
            visit(one.at + offset, now);
            bytes -= now;
            offset = 0;
        }
    }
    static const Pieces& of(const mpip_type_t* type) { return *static_cast<const Pieces*>(type); }
    static void pack(const mpip_type_t* type, const void* buf, size_t, size_t offset, void* to,
                     size_t bytes) {
        auto* out = static_cast<unsigned char*>(to);
        of(type).each(offset, bytes, [&](size_t at, size_t n) {
            std::memcpy(out, static_cast<const unsigned char*>(buf) + at, n);
            out += n;
        });
    }
    static void unpack(const mpip_type_t* type, void* buf, size_t, size_t offset, const void* from,
                       size_t bytes) {
        const auto* in = static_cast<const unsigned char*>(from);
        of(type).each(offset, bytes, [&](size_t at, size_t n) {
            std::memcpy(static_cast<unsigned char*>(buf) + at, in, n);
            in += n;
        });
    }
    static size_t tell(const mpip_type_t* type, void* buf, size_t, size_t bytes, mpip_piece* to,
                       size_t room) {
        size_t n = 0;
        of(type).each(0, bytes, [&](size_t at, size_t length) {
            if (n < room) to[n] = {static_cast<char*>(buf) + at, length};
            ++n;
        });
        return n <= room ? n : 0;
    }
    Pieces() : mpip_type{} {
        d_pack = pack;
        d_unpack = unpack;
        d_pieces = tell;
    }
    void add(size_t gap, size_t bytes) {
        all.push_back({extent + gap, bytes});
        extent += gap + bytes;
        d_size = total += bytes;
    }
};

// `bytes` bytes in `count` pieces of random lengths and distances, shuffled; 1: no gaps.
inline Pieces random_pieces(std::mt19937& dice, size_t bytes, size_t count) {
    Pieces made;
    size_t left = bytes;
    for (size_t i = 0; i < count; ++i) {
        const size_t usual = left / (count - i);
        const size_t now = i + 1 == count ? left : std::max<size_t>(1, usual / 2 + dice() % (usual + 1));
        made.add(dice() % 300, now);
        left -= now;
    }
    std::shuffle(made.all.begin(), made.all.end(), dice);
    return made;
}

struct Buffer {
    explicit Buffer(Pieces pieces) : layout(std::move(pieces)), memory(layout.extent + 64, 0xaa) {}
    const mpip_type_t* type() const { return layout.all.size() == 1 ? nullptr : &layout; }
    unsigned char* data() { return memory.data() + (type() == nullptr ? layout.all[0].at : 0); }
    void put(uint32_t number) {
        std::vector<unsigned char> packed(layout.total);
        fill(packed, number);
        Pieces::unpack(&layout, memory.data(), 1, 0, packed.data(), packed.size());
    }
    // The first `bytes` bytes are those of `number`; nothing else has been touched.
    bool has(uint32_t number, size_t bytes) const {
        std::vector<unsigned char> packed(bytes), wanted(memory.size(), 0xaa);
        fill(packed, number);
        Pieces::unpack(&layout, wanted.data(), 1, 0, packed.data(), bytes);
        return wanted == memory;
    }
    Pieces layout;
    std::vector<unsigned char> memory;
};

}  // namespace viaduct::adi_test
