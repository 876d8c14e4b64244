// SPDX-License-Identifier: BSD-2-Clause
// Objects of the program and the calls that made them; memory that two operations under way use.
#include "mpi-adi/engine/check/made.hpp"

#include <algorithm>
#include <atomic>

#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::checking {
namespace {

// Looked through for ended requests when there are so many more than were found alive the last time.
constexpr size_t kMostEnded = 1024;
// Of a type with more pieces nothing is said.
constexpr size_t kMostPieces = 1u << 16;

size_t alive_last_time = 0;
std::atomic<int> changes{0};  // under way

// While the records change.
class Change {
public:
    Change() { changes++; }
    ~Change() { changes--; }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

private:
    AnyTime tables_;  // calls without the engine's lock make objects, too
};

struct Piece {
    uintptr_t begin;
    uintptr_t end;
};

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The memory of a message, in order; nothing when it has too many pieces.
std::vector<Piece> pieces_of(const Request& request) {
    std::vector<Piece> all;
    const uintptr_t base = address(request.r_buf);
    if (request.r_bytes == 0 || request.r_buf == nullptr) return all;
    if (request.r_type == nullptr) return {{base, base + request.r_bytes}};
    const auto& type = static_cast<const Datatype&>(*request.r_type);
    size_t each = 0;
    for (const Run& run : type.runs) each += static_cast<size_t>(run.count);
    if (each * request.r_count > kMostPieces) return all;
    for (uint64_t item = 0; item < request.r_count; item++)
        for (const Run& run : type.runs)
            for (MPI_Count i = 0; i < run.count; i++) {
                const uintptr_t at = base + static_cast<uintptr_t>(static_cast<MPI_Aint>(item) * type.extent() +
                                                                   run.offset + i * run.stride);
                all.push_back({at, at + static_cast<uintptr_t>(run.length)});
            }
    std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    return all;
}

// The first bytes that two lists have in common; empty: none.
Piece common(const std::vector<Piece>& a, const std::vector<Piece>& b) {
    for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        const Piece both = {std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
        if (both.begin < both.end) return both;
        a[i].end < b[k].end ? i++ : k++;
    }
    return {0, 0};
}

// Whether the program has begun the request and not yet seen its end.
bool has_memory(const Request& request) {
    const bool message = request.kind == Request::Kind::send || request.kind == Request::Kind::receive;
    return message && !request.no_process && request.persistent == nullptr && request.copy == nullptr;
}

std::string text_of(const Piece& piece) {
    char text[64];
    std::snprintf(text, sizeof text, "%llu bytes at 0x%llx", static_cast<unsigned long long>(piece.end - piece.begin),
                  static_cast<unsigned long long>(piece.begin));
    return text;
}

void look_for_overlap(const Request& begun, const std::string& call) {
    if (!has_memory(begun)) return;
    const std::vector<Piece> own = pieces_of(begun);
    for (const auto& [key, record] : records()) {
        if (key.kind != Kind::request || key.handle == begun.handle) continue;
        const Request* const other = request_of(key.handle);
        if (other == nullptr || !has_memory(*other)) continue;
        if (other->kind == Request::Kind::send && begun.kind == Request::Kind::send) continue;
        const Piece both = common(own, pieces_of(*other));
        if (both.begin == both.end) continue;
        say("CMPI_CHECK: two operations under way use the same memory, and one of them receives: " + call + " and " +
            record.call + " have " + text_of(both) + " in common. Wait for the first one (MPI_Wait, MPI_Test) before "
            "its memory is used again, or give each its own");
        return;
    }
}

void erase_ended() {
    std::erase_if(records(), [](const auto& one) { return !is_alive(one.first); });
    alive_last_time = records().size();
}

}  // namespace

Records& records() {
    static Records* all = new Records;  // never destroyed: a program may leave from anywhere
    return *all;
}

bool is_alive(const Key& key) {
    if (handle_kind(key.handle) != HandleKind::indirect) return false;
    switch (key.kind) {
        case Kind::comm:
            return comm_of(key.handle) != nullptr;
        case Kind::datatype:
            return type_of(key.handle) != nullptr && !type_of(key.handle)->is_never_freed();
        case Kind::group:
            return group_of(key.handle) != nullptr;
        case Kind::op:
            return op_of(key.handle) != nullptr;
        case Kind::win:
            return rma::win_of(key.handle) != nullptr;
        case Kind::request:
        case Kind::message:
            return request_of(key.handle) != nullptr;
        case Kind::info:
            return info_of(key.handle) != nullptr;
        case Kind::errhandler:
            return errhandler_of(key.handle) != nullptr;
        case Kind::keyval:
            return keyval_is_kept(key.handle);
        case Kind::session:
            return true;  // its end takes the record away
    }
    return false;
}

bool is_changing() { return changes != 0; }

void note_made(Kind kind, int handle, std::string call) {
    const Change change;
    const Key key{kind, handle};
    if (!is_alive(key)) return;
    if (kind == Kind::request) look_for_overlap(*request_of(handle), call);
    if (records().size() > 2 * alive_last_time + kMostEnded) erase_ended();
    Record& record = records()[key];
    record.call = std::move(call);
    record.given++;
}

void freed(Kind kind, int handle) {
    const Change change;
    const auto found = records().find({kind, handle});
    if (found != records().end() && --found->second.given == 0) records().erase(found);
}

}  // namespace viaduct::mpi::checking
