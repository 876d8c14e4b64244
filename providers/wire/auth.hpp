// SPDX-License-Identifier: BSD-2-Clause
// Frames that prove where they come from: nodes that have been given the same key put a tag where frames have
// their pass. What belongs to a connection is tagged with a key of its own for each direction, which follows
// from what both ends have drawn for it, and with the whole of its sequence number, of which the header has 32
// bits: so no frame is good a second time, or elsewhere. Used by Node and Link.
#pragma once

#include <cstdint>
#include <span>

#include "providers/wire/format.hpp"
#include "providers/wire/siphash.hpp"

namespace viaduct::wire {

// 32 hexadecimal digits, white space around them. False: they are not.
bool read_key(const char* text, Key* out);

// The key of the direction from the link with `from_pass` to the link with `to_pass`.
Key key_of_direction(const Key& common, uint64_t from_pass, uint64_t to_pass);

// The tag of a frame with that header, whose pass does not count. The last bytes of its payload lie in `tail`.
uint64_t tag_of(const Key&, const Header&, uint64_t whole_sequence, const std::byte* fields,
                std::span<const Piece> tail = {});

// Kinds that are tagged with a direction's key; others may come from or go to a node without the connection.
inline bool is_of_connection(Kind kind) {
    return is_sequenced(kind) || kind == Kind::confirm || kind == Kind::disconnect || kind == Kind::keep_alive ||
           kind == Kind::acknowledge;
}

// Sequence numbers that do not wrap, of those in one direction.
class WholeSequence {
public:
    void begin(uint32_t first) { latest_ = first; }
    uint64_t of(uint32_t sequence) const {
        return latest_ + static_cast<uint64_t>(
                             static_cast<int64_t>(static_cast<int32_t>(sequence - static_cast<uint32_t>(latest_))));
    }
    void pass(uint64_t whole) { latest_ = whole > latest_ ? whole : latest_; }

private:
    uint64_t latest_ = 0;
};

}  // namespace viaduct::wire
