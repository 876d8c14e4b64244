// SPDX-License-Identifier: BSD-2-Clause
// What lies behind a request or a reply whose sender's memory may be read or written: fixed, little-endian,
// without padding. Pure layout.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace viaduct::protocol {

// A number as it lies in a packet: any alignment, lowest byte first.
template <class T>
class Le {
public:
    operator T() const {
        T value;
        std::memcpy(&value, bytes_, sizeof value);
        return swap(value);
    }
    Le& operator=(T value) {
        value = swap(value);
        std::memcpy(bytes_, &value, sizeof value);
        return *this;
    }

private:
    static T swap(T value) {
        if constexpr (std::endian::native == std::endian::big) {
            T turned;
            for (size_t i = 0; i < sizeof value; ++i) {
                reinterpret_cast<unsigned char*>(&turned)[i] =
                    reinterpret_cast<unsigned char*>(&value)[sizeof value - 1 - i];
            }
            return turned;
        }
        return value;
    }
    unsigned char bytes_[sizeof(T)];
};

using Le16 = Le<uint16_t>;
using Le32 = Le<uint32_t>;
using Le64 = Le<uint64_t>;

// A registration has a handle for each NIC that carries frames to the peer.
constexpr size_t kMostHandles = 8;

// Rows of handles follow, `handles` in each, then the list of pieces, unless `address` says where that lies:
// then the last row is for it.
struct WireMemory {
    Le64 address;  // of the data, where that has no gaps, or of the list; 0: the list follows
    Le64 first;    // reply, both: where the part begins that the sender writes
    Le32 pieces;   // data with gaps: how many; 0: no gaps
    Le16 rows;
    Le16 handles;
};
static_assert(sizeof(WireMemory) == 24);

// Where data with gaps lies, in its order.
struct WirePiece {
    Le64 address;
    Le64 bytes;
    Le32 row;
};
static_assert(sizeof(WirePiece) == 20);

}  // namespace viaduct::protocol
