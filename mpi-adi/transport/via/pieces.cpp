// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/pieces.hpp"

#include <algorithm>

#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

// Pieces that no single registration can cover have one each, of which there are not many on a NIC.
constexpr size_t kMostRegistrations = 64;
// One for all is the better one as long as it is not mostly of gaps: memory is pinned for it, perhaps.
constexpr uint64_t kWidest = 16;

}  // namespace

PieceList* PieceList::free_lists = nullptr;

void KeepPieceList::operator()(PieceList* list) const {
    for (Registration* r : list->held_) release_buffer(r);
    if (list->wire_held_ != nullptr) release_buffer(list->wire_held_);
    list->wire_held_ = nullptr;
    list->held_.clear();
    list->pieces_.clear();
    list->wire_.clear();
    list->at_ = 0;
    list->into_ = 0;
    list->next_free_ = PieceList::free_lists;
    PieceList::free_lists = list;
}

PieceListPtr PieceList::fresh() {
    if (free_lists == nullptr) return PieceListPtr(new PieceList);
    PieceListPtr list(free_lists);
    free_lists = list->next_free_;
    return list;
}

PieceListPtr PieceList::of(const mpip_req_t* req, size_t bytes) {
    if (req->r_type == nullptr || req->r_type->d_pieces == nullptr || bytes == 0) return nullptr;
    const size_t most = std::min(bytes / viadev.gap_piece, kMostPieces);
    if (most == 0) return nullptr;
    static std::vector<mpip_piece> told;
    told.resize(most);
    const size_t count =
        req->r_type->d_pieces(req->r_type, req->r_buf, req->r_count, bytes, told.data(), most);
    if (count == 0) return nullptr;
    PieceListPtr list = fresh();
    for (size_t i = 0; i < count; ++i) {
        list->pieces_.push_back({reinterpret_cast<uint64_t>(told[i].pc_at), told[i].pc_bytes, 0});
    }
    return list;
}

PieceListPtr PieceList::of_one(void* buffer, size_t bytes, VIP_MEM_HANDLE handle) {
    PieceListPtr list = fresh();
    list->pieces_.push_back({reinterpret_cast<uint64_t>(buffer), bytes, handle});
    return list;
}

bool PieceList::enter() {
    uint64_t low = UINT64_MAX, high = 0, sum = 0;
    for (const Piece& piece : pieces_) {
        low = std::min(low, piece.address);
        high = std::max(high, piece.address + piece.bytes);
        sum += piece.bytes;
    }
    if ((high - low) / kWidest <= sum) {
        if (Registration* all = hold_buffer(reinterpret_cast<void*>(low), high - low)) {
            held_.push_back(all);
            for (Piece& piece : pieces_) piece.handle = all->handle;
            return true;
        }
    }
    if (pieces_.size() > kMostRegistrations) return false;
    for (Piece& piece : pieces_) {
        Registration* one = hold_buffer(reinterpret_cast<void*>(piece.address), piece.bytes);
        if (one == nullptr) {
            for (Registration* r : held_) release_buffer(r);
            held_.clear();
            return false;
        }
        held_.push_back(one);
        piece.handle = one->handle;
    }
    return true;
}

void PieceList::write(void* to) const {
    auto* out = static_cast<WirePiece*>(to);
    for (const Piece& piece : pieces_) {
        out->address = piece.address;
        out->bytes = piece.bytes;
        out->memhandle = piece.handle;
        ++out;
    }
}

const WirePiece* PieceList::publish(VIP_MEM_HANDLE* handle) {
    wire_.resize(pieces_.size());
    write(wire_.data());
    return room(handle);
}

void PieceList::load(const void* from, size_t count) {
    const auto* in = static_cast<const WirePiece*>(from);
    pieces_.resize(count);
    for (Piece& piece : pieces_) {
        piece = {in->address, in->bytes, in->memhandle};
        ++in;
    }
}

bool PieceList::makes_sense(uint64_t bytes) const {
    uint64_t sum = 0;
    for (const Piece& piece : pieces_) {
        uint64_t end = 0;
        if (piece.bytes == 0 || piece.handle == 0 ||
            __builtin_add_overflow(piece.address, piece.bytes, &end) ||
            __builtin_add_overflow(sum, piece.bytes, &sum))
            return false;
    }
    return sum == bytes;
}

PieceListPtr PieceList::read(const void* from, size_t count, uint64_t bytes) {
    PieceListPtr list = fresh();
    list->load(from, count);
    return list->makes_sense(bytes) ? std::move(list) : nullptr;
}

PieceListPtr PieceList::awaited(size_t count) {
    PieceListPtr list = fresh();
    list->wire_.resize(count);
    VIP_MEM_HANDLE handle;
    return list->room(&handle) != nullptr ? std::move(list) : nullptr;
}

WirePiece* PieceList::room(VIP_MEM_HANDLE* handle) {
    if (wire_held_ == nullptr) wire_held_ = hold_buffer(wire_.data(), wire_.size() * sizeof(WirePiece));
    if (wire_held_ == nullptr) return nullptr;
    *handle = wire_held_->handle;
    return wire_.data();
}

bool PieceList::take_fetched(uint64_t bytes) {
    load(wire_.data(), wire_.size());
    return makes_sense(bytes);
}

void PieceList::advance(uint64_t bytes) {
    while (bytes > 0) {
        const uint64_t now = std::min(bytes, left());
        into_ += now;
        bytes -= now;
        if (into_ < pieces_[at_].bytes) return;
        ++at_;
        into_ = 0;
    }
}

uint64_t PieceList::fill(VIP_DESCRIPTOR_SEGMENT* data, size_t room, uint64_t bytes, size_t* segments) const {
    uint64_t filled = 0;
    uint64_t skip = into_;
    size_t n = 0;
    for (size_t i = at_; n < room && filled < bytes && i < pieces_.size(); ++i, ++n, skip = 0) {
        const Piece& piece = pieces_[i];
        const uint64_t now = std::min(piece.bytes - skip, bytes - filled);
        data[n].Local.Data.AddressBits = piece.address + skip;
        data[n].Local.Handle = piece.handle;
        data[n].Local.Length = static_cast<VIP_UINT32>(now);
        filled += now;
    }
    *segments = n;
    return filled;
}

uint32_t vbuf_init_pieces(vbuf* v, unsigned control, const PieceList& near, const PieceList& far,
                          uint64_t most, size_t segments) {
    VIP_DESCRIPTOR& d = *long_descriptor_of(v);
    size_t used = 0;
    const size_t room = std::min(segments, kMostSegments) - 1;
    auto* data = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT*>(v->buffer + sizeof(VIP_CONTROL_SEGMENT)) + 1;
    const auto bytes = static_cast<uint32_t>(near.fill(data, room, std::min(most, far.left()), &used));
    d.CS.SegCount = static_cast<VIP_UINT16>(used + 1);
    d.CS.Control = static_cast<VIP_UINT16>(control);
    d.CS.Reserved = 0;
    d.CS.Length = bytes;
    d.CS.Status = 0;
    d.DS[0].Remote.Data.AddressBits = far.address();
    d.DS[0].Remote.Handle = far.current().handle;
    d.DS[0].Remote.Reserved = 0;
    v->transfer = nullptr;
    return bytes;
}

}  // namespace viaduct::via
