// SPDX-License-Identifier: BSD-2-Clause
// Data with gaps as the NIC sees it: a list of registered pieces, in the order of the data, with a cursor.
// Either side of a long message has one for its own buffer, where that has gaps, and one for the other
// side's, which comes behind a request or a reply or is fetched (P38, T13, T14). Under the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/via/registration.hpp"
#include "mpi-adi/transport/via/vbuf.hpp"
#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

// A message of more pieces goes in packets. Bounds what a peer can make this side keep for each of its
// messages; such a list is below 64 KiB, which every NIC moves in one transfer.
constexpr size_t kMostPieces = 3072;

struct Piece {
    uint64_t address;
    uint64_t bytes;
    VIP_MEM_HANDLE handle;
};

class PieceList;
struct KeepPieceList {
    void operator()(PieceList* list) const;  // for the next message
};
using PieceListPtr = std::unique_ptr<PieceList, KeepPieceList>;

class PieceList {
public:
    // --- own buffers ---

    // Where the first `bytes` bytes of a request's data lie, not registered yet. nullptr: not told by the
    // type, more than kMostPieces, or pieces below CMPI_GAP_PIECE on average.
    static PieceListPtr of(const mpip_req_t* req, size_t bytes);
    // A buffer without gaps beside one with gaps.
    static PieceListPtr of_one(void* buffer, size_t bytes, VIP_MEM_HANDLE handle);
    // Registers all pieces: at once where one registration covers them, else each. False: it cannot be done,
    // nothing is registered.
    bool enter();

    // --- lists on their way ---

    // The list behind a packet of `head` bytes, when it fits.
    size_t wire_bytes() const { return pieces_.size() * sizeof(WirePiece); }
    bool fits_behind(size_t head) const { return wire_bytes() <= VBUF_BUFFER_SIZE - head; }
    void write(void* to) const;
    // The list in memory of its own that the other side can read; nullptr: it cannot be registered. It is
    // there until the list is given back.
    const WirePiece* publish(VIP_MEM_HANDLE* handle);

    // What the other side has told. nullptr: it makes no sense (a piece without bytes, beyond the end of
    // memory or without handle, or not `bytes` bytes altogether).
    static PieceListPtr read(const void* from, size_t count, uint64_t bytes);
    // Room for a list of `count` pieces, at most kMostPieces, to be fetched; nullptr: it is not registered.
    static PieceListPtr awaited(size_t count);
    WirePiece* room(VIP_MEM_HANDLE* handle);
    size_t room_bytes() const { return wire_.size() * sizeof(WirePiece); }
    // It is there. False as for read().
    bool take_fetched(uint64_t bytes);

    // --- moving ---

    size_t count() const { return pieces_.size(); }
    const Piece& current() const { return pieces_[at_]; }
    // Where the next byte goes, and how many more lie behind it without a gap.
    uint64_t address() const { return pieces_[at_].address + into_; }
    uint64_t left() const { return pieces_[at_].bytes - into_; }
    void advance(uint64_t bytes);
    // Names pieces from here on in the data segments of a descriptor: at most `room` of them and `bytes`
    // bytes. How many bytes; *segments tells of how many segments. Moves nothing.
    uint64_t fill(VIP_DESCRIPTOR_SEGMENT* data, size_t room, uint64_t bytes, size_t* segments) const;

private:
    friend struct KeepPieceList;
    static PieceListPtr fresh();
    bool makes_sense(uint64_t bytes) const;
    void load(const void* from, size_t count);

    static PieceList* free_lists;
    PieceList* next_free_ = nullptr;
    std::vector<Piece> pieces_;
    std::vector<Registration*> held_;
    std::vector<WirePiece> wire_;
    Registration* wire_held_ = nullptr;
    size_t at_ = 0;
    uint64_t into_ = 0;
};

// Fills the long descriptor of a vbuf for one remote write or read between both cursors, of at most `most`
// bytes and `segments` segments, the one of the address included. How many bytes it moves; the cursors stay.
uint32_t vbuf_init_pieces(vbuf* v, unsigned control, const PieceList& near, const PieceList& far,
                          uint64_t most, size_t segments);

}  // namespace viaduct::via
