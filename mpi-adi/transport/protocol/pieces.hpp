// SPDX-License-Identifier: BSD-2-Clause
// Where the data of a long message lies on one side: a list of registered pieces in the order of the data,
// with a cursor; one piece where there are no gaps. Either side of a message has one for its own buffer and
// one for the other side's, which comes behind a request or a reply, or is fetched (spec/adi P38, T13, T14).
// Under the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/protocol/lane.hpp"

namespace viaduct::protocol {

// A message of more pieces goes in frames. Bounds what a peer can make this side keep for each of its
// messages; such a list is below 64 KiB, which every NIC moves in one transfer.
constexpr size_t kMostPieces = 3072;
// Pieces that no single registration can cover have one each, of which there are not many on a NIC.
constexpr size_t kMostRows = 64;

struct Piece {
    uint64_t address;
    uint64_t bytes;
    uint32_t row;
};

class PieceList;
struct KeepPieceList {
    void operator()(PieceList* list) const;  // for the next message
};
using PieceListPtr = std::unique_ptr<PieceList, KeepPieceList>;

class PieceList {
public:
    struct Row {
        uint32_t handle[kMostHandles];
    };

    // --- own buffers ---

    // Where the first `bytes` bytes of a request's data lie, not registered yet. nullptr: the type does not
    // tell, there are more than kMostPieces, or they are below `least` bytes on average.
    static PieceListPtr of(const mpip_req_t* req, size_t bytes, size_t least);
    // Memory without gaps that is registered already, by its handles.
    static PieceListPtr of_one(uint64_t address, uint64_t bytes, const Row& row);
    // Memory of the other side, in these pieces and one region of it.
    static PieceListPtr of_region(const mpip_piece* pieces, size_t count, const mpip_region& region);
    // Registers all pieces: at once where one registration covers them, else each. False: it cannot be done,
    // nothing is registered.
    [[nodiscard]] bool register_with(Memory& memory);
    bool is_registered() const { return !held_.empty(); }

    // --- lists on their way ---

    // Appends a description for the other side: behind the frame when it fits into `room`, else as a list in
    // memory of its own, which is there until this is given back. False: that cannot be.
    [[nodiscard]] bool describe(Memory& memory, size_t room, bool may_be_fetched, uint64_t first,
                                std::vector<char>* to);
    // Reads such a description from a payload. False: it is invalid (a piece without bytes, beyond the
    // end of memory or of a row that is not there, or not `bytes` bytes altogether). *list is nullptr when
    // nothing is told, and what needs_fetching() when its pieces are still to be read.
    static bool parse(const void* payload, size_t bytes, uint64_t length, PieceListPtr* list, uint64_t* first);
    bool needs_fetching() const { return list_address_ != 0; }
    // Memory of ours for the list of the other side, and where it lies there.
    PieceListPtr room_for_list(Memory& memory);
    PieceListPtr far_list() const;
    // The list has arrived. False as for parse().
    [[nodiscard]] bool take_fetched(uint64_t length);

    // One NIC has registered both.
    bool shares_nic(const PieceList& other) const;

    // --- moving ---

    size_t count() const { return pieces_.empty() ? wire_.size() : pieces_.size(); }
    const Piece& current() const { return pieces_[at_]; }
    const Row& row() const { return rows_[pieces_[at_].row]; }
    const Row& row(uint32_t index) const { return rows_[index]; }
    // Where the next byte lies, and how many more lie behind it without a gap.
    uint64_t address() const { return pieces_[at_].address + into_; }
    uint64_t left() const { return pieces_[at_].bytes - into_; }
    void advance(uint64_t bytes);
    // To so many bytes from the beginning.
    void seek(uint64_t bytes) {
        at_ = 0;
        into_ = 0;
        advance(bytes);
    }
    // All of it is registered with that NIC.
    bool known_to(size_t nic) const {
        for (const Row& one : rows_) {
            if (one.handle[nic] == 0) return false;
        }
        return true;
    }
    // Calls each(address, bytes, row) for the pieces from the cursor on, at most `room` of them and `bytes`
    // bytes. How many bytes. Moves nothing.
    template <class Each>
    uint64_t visit(size_t room, uint64_t bytes, Each each) const {
        uint64_t seen = 0, skip = into_;
        for (size_t i = at_; room-- != 0 && seen < bytes && i < pieces_.size(); ++i, skip = 0) {
            const uint64_t now =
                pieces_[i].bytes - skip < bytes - seen ? pieces_[i].bytes - skip : bytes - seen;
            each(pieces_[i].address + skip, now, rows_[pieces_[i].row]);
            seen += now;
        }
        return seen;
    }

private:
    friend struct KeepPieceList;
    static PieceListPtr fresh();
    bool is_valid(uint64_t bytes) const;
    void load(const void* from, size_t count);
    void add_row(const Registration& registration);

    static PieceList* free_lists;
    PieceList* next_free_ = nullptr;
    Memory* memory_ = nullptr;
    std::vector<Piece> pieces_;
    std::vector<Row> rows_;
    std::vector<Registration*> held_;
    std::vector<WirePiece> wire_;
    Registration* wire_held_ = nullptr;
    uint64_t list_address_ = 0;
    size_t at_ = 0;
    uint64_t into_ = 0;
};

}  // namespace viaduct::protocol
