// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/protocol/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace viaduct::protocol {

namespace {

// One registration for all is the better one as long as it is not mostly of gaps: memory is pinned for it,
// perhaps.
constexpr uint64_t kWidest = 16;

void append(std::vector<char>* to, const void* from, size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    to->insert(to->end(), at, at + bytes);
}

}  // namespace

PieceList* PieceList::free_lists = nullptr;

void KeepPieceList::operator()(PieceList* list) const {
    for (Registration* r : list->held_) list->memory_->release(r);
    if (list->wire_held_ != nullptr) list->memory_->release(list->wire_held_);
    list->wire_held_ = nullptr;
    list->held_.clear();
    list->pieces_.clear();
    list->rows_.clear();
    list->wire_.clear();
    list->list_address_ = 0;
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

PieceListPtr PieceList::of(const mpip_req_t* req, size_t bytes, size_t least) {
    if (bytes == 0) return nullptr;
    if (mpip_req_is_contig(req)) {
        PieceListPtr list = fresh();
        list->pieces_.push_back({reinterpret_cast<uintptr_t>(req->r_buf), bytes, 0});
        return list;
    }
    if (req->r_type->d_pieces == nullptr) return nullptr;
    const size_t most = std::min(bytes / least, kMostPieces);
    if (most == 0) return nullptr;
    static auto& told = *new std::vector<mpip_piece>;
    told.resize(most);
    const size_t count =
        req->r_type->d_pieces(req->r_type, req->r_buf, req->r_count, bytes, told.data(), most);
    if (count == 0) return nullptr;
    PieceListPtr list = fresh();
    for (size_t i = 0; i < count; ++i)
        list->pieces_.push_back({reinterpret_cast<uintptr_t>(told[i].pc_at), told[i].pc_bytes, 0});
    return list;
}

PieceListPtr PieceList::of_one(uint64_t address, uint64_t bytes, const Row& row) {
    PieceListPtr list = fresh();
    list->pieces_.push_back({address, bytes, 0});
    list->rows_.push_back(row);
    return list;
}

PieceListPtr PieceList::of_region(const mpip_piece* pieces, size_t count, const mpip_region& region) {
    static_assert(sizeof region.rg_handle == sizeof(Row::handle));
    PieceListPtr list = fresh();
    for (size_t i = 0; i < count; ++i)
        list->pieces_.push_back({reinterpret_cast<uintptr_t>(pieces[i].pc_at), pieces[i].pc_bytes, 0});
    Row row;
    std::memcpy(row.handle, region.rg_handle, sizeof row.handle);
    list->rows_.push_back(row);
    return list;
}

void PieceList::add_row(const Registration& registration) {
    Row row;
    std::memcpy(row.handle, registration.handle, sizeof row.handle);
    rows_.push_back(row);
}

bool PieceList::register_with(Memory& memory) {
    if (is_registered()) return true;
    memory_ = &memory;
    uint64_t low = UINT64_MAX, high = 0, sum = 0;
    for (const Piece& piece : pieces_) {
        low = std::min(low, piece.address);
        high = std::max(high, piece.address + piece.bytes);
        sum += piece.bytes;
    }
    if ((high - low) / kWidest <= sum) {
        if (Registration* all = memory.acquire(reinterpret_cast<void*>(low), high - low)) {
            held_.push_back(all);
            add_row(*all);
            return true;
        }
    }
    if (pieces_.size() == 1 || pieces_.size() >= kMostRows) return false;
    for (Piece& piece : pieces_) {
        Registration* one = memory.acquire(reinterpret_cast<void*>(piece.address), piece.bytes);
        if (one == nullptr) {
            for (Registration* r : held_) memory.release(r);
            held_.clear();
            rows_.clear();
            return false;
        }
        piece.row = static_cast<uint32_t>(held_.size());
        held_.push_back(one);
        add_row(*one);
    }
    return true;
}

bool PieceList::describe(Memory& memory, size_t room, bool may_be_fetched, uint64_t first, std::vector<char>* to) {
    const bool gaps = pieces_.size() > 1;
    const size_t handles = memory.handles();
    wire_.clear();
    for (const Piece& piece : pieces_) {
        WirePiece one;
        one.address = piece.address;
        one.bytes = piece.bytes;
        one.row = piece.row;
        wire_.push_back(one);
    }
    const size_t list_bytes = wire_.size() * sizeof(WirePiece);
    const size_t here = sizeof(WireMemory) + rows_.size() * handles * sizeof(Le32) + (gaps ? list_bytes : 0);
    const bool fetched = here > room;
    if (fetched) {
        if (!may_be_fetched || !gaps || rows_.size() >= kMostRows) return false;
        wire_held_ = memory.acquire(wire_.data(), list_bytes);
        if (wire_held_ == nullptr) return false;
    }
    WireMemory told;
    told.address = fetched ? reinterpret_cast<uintptr_t>(wire_.data()) : gaps ? 0 : pieces_[0].address;
    told.first = first;
    told.pieces = gaps ? static_cast<uint32_t>(pieces_.size()) : 0;
    told.rows = static_cast<uint16_t>(rows_.size() + (fetched ? 1 : 0));
    told.handles = static_cast<uint16_t>(handles);
    append(to, &told, sizeof told);
    for (size_t i = 0; i < told.rows; ++i) {
        const uint32_t* row = i < rows_.size() ? rows_[i].handle : wire_held_->handle;
        for (size_t j = 0; j < handles; ++j) {
            Le32 handle;
            handle = row[j];
            append(to, &handle, sizeof handle);
        }
    }
    if (gaps && !fetched) append(to, wire_.data(), list_bytes);
    return true;
}

bool PieceList::parse(const void* payload, size_t bytes, uint64_t length, PieceListPtr* list, uint64_t* first) {
    *list = nullptr;
    *first = 0;
    if (bytes == 0) return true;
    WireMemory told;
    if (bytes < sizeof told) return false;
    std::memcpy(static_cast<void*>(&told), payload, sizeof told);
    const auto* at = static_cast<const char*>(payload) + sizeof told;
    const size_t rows = told.rows, handles = told.handles, pieces = told.pieces;
    const uint64_t address = told.address;
    const bool fetched = pieces != 0 && address != 0;
    const size_t list_bytes = pieces != 0 && !fetched ? pieces * sizeof(WirePiece) : 0;
    if (rows == 0 || rows > kMostRows + 1 || handles == 0 || handles > kMostHandles || pieces > kMostPieces ||
        pieces == 1 || (fetched && rows < 2) ||
        bytes != sizeof told + rows * handles * sizeof(Le32) + list_bytes)
        return false;
    PieceListPtr received = fresh();
    for (size_t i = 0; i < rows; ++i) {
        Row row = {};
        bool any = false;
        for (size_t j = 0; j < handles; ++j, at += sizeof(Le32)) {
            Le32 handle;
            std::memcpy(static_cast<void*>(&handle), at, sizeof handle);
            row.handle[j] = handle;
            any = any || row.handle[j] != 0;
        }
        if (!any) return false;
        received->rows_.push_back(row);
    }
    *first = told.first;
    if (fetched) {
        received->list_address_ = address;
        received->wire_.resize(pieces);
    } else {
        if (pieces != 0) {
            received->load(at, pieces);
        } else {
            received->pieces_.push_back({address, length, 0});
        }
        if (!received->is_valid(length)) return false;
    }
    *list = std::move(received);
    return true;
}

void PieceList::load(const void* from, size_t count) {
    const auto* in = static_cast<const WirePiece*>(from);
    pieces_.resize(count);
    for (Piece& piece : pieces_) {
        piece = {in->address, in->bytes, in->row};
        ++in;
    }
}

bool PieceList::is_valid(uint64_t bytes) const {
    uint64_t sum = 0;
    for (const Piece& piece : pieces_) {
        uint64_t end = 0;
        if (piece.bytes == 0 || piece.row >= rows_.size() ||
            __builtin_add_overflow(piece.address, piece.bytes, &end) ||
            __builtin_add_overflow(sum, piece.bytes, &sum))
            return false;
    }
    return sum == bytes;
}

PieceListPtr PieceList::room_for_list(Memory& memory) {
    memory_ = &memory;
    const size_t bytes = wire_.size() * sizeof(WirePiece);
    if (wire_held_ == nullptr) wire_held_ = memory.acquire(wire_.data(), bytes);
    if (wire_held_ == nullptr) return nullptr;
    Row row;
    std::memcpy(row.handle, wire_held_->handle, sizeof row.handle);
    return of_one(reinterpret_cast<uintptr_t>(wire_.data()), bytes, row);
}

PieceListPtr PieceList::far_list() const {
    return of_one(list_address_, wire_.size() * sizeof(WirePiece), rows_.back());
}

bool PieceList::take_fetched(uint64_t length) {
    list_address_ = 0;
    rows_.pop_back();
    load(wire_.data(), wire_.size());
    return is_valid(length);
}

bool PieceList::shares_nic(const PieceList& other) const {
    for (size_t i = 0; i < kMostHandles; ++i) {
        if (known_to(i) && other.known_to(i)) return true;
    }
    return false;
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

}  // namespace viaduct::protocol
