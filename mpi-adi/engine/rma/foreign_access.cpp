// SPDX-License-Identifier: BSD-2-Clause
// See foreign_access.hpp.
#include "mpi-adi/engine/rma/foreign_access.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "mpi-adi/engine/rma/foreign_scope.hpp"
#include "mpi-adi/engine/rma/layout.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {
namespace {

using Result = ForeignMemory::Result;

// The end of a process may be seen here before its module has seen it. The window knows it from now on: a program that
// leaves an epoch because of it must not count in the meeting of all in which others wait for the end of that epoch.
int error_of(Result result, const Foreign& foreign) {
    switch (result) {
        case Result::ok:
            return MPI_SUCCESS;
        case Result::unreached:
            return MPI_ERR_RMA_RANGE;
        case Result::ended:
            foreign.window.found_ended.store(true, std::memory_order_relaxed);
            return MPIX_ERR_PROC_FAILED;
        case Result::forbidden:
            break;
    }
    return MPI_ERR_ACCESS;
}

// Pieces of the member's memory in the order of their data, handed on when there are enough of them: `move` gets them
// with how many bytes they are together.
template <size_t Most, typename Move>
class Pieces {
public:
    explicit Pieces(size_t most_bytes, Move move) : most_bytes_(most_bytes), move_(std::move(move)) {}

    void add(char* at, size_t bytes) {
        while (bytes > 0 && error_ == MPI_SUCCESS) {
            const size_t now = std::min(bytes, most_bytes_ - bytes_);
            pieces_[count_++] = {at, now};
            bytes_ += now;
            at += now;
            bytes -= now;
            if (count_ == Most || bytes_ == most_bytes_) flush();
        }
    }
    int end() {
        if (count_ > 0) flush();
        return error_;
    }

private:
    void flush() {
        if (error_ == MPI_SUCCESS) error_ = move_(std::span<const iovec>(pieces_.data(), count_), bytes_);
        count_ = 0;
        bytes_ = 0;
    }

    std::array<iovec, Most> pieces_;
    size_t count_ = 0, bytes_ = 0;
    const size_t most_bytes_;
    Move move_;
    int error_ = MPI_SUCCESS;
};

constexpr size_t kPieces = 64;

template <typename Move>
int for_pieces(const ForeignItems& items, size_t most_bytes, Move&& move) {
    Pieces<kPieces, Move> pieces(most_bytes, std::forward<Move>(move));
    for_each_piece(items.type, reinterpret_cast<char*>(items.address), items.count, items.bytes,
                   [&](char* at, uint64_t bytes) { pieces.add(at, static_cast<size_t>(bytes)); });
    return pieces.end();
}

}  // namespace

int foreign_check_attached(Member& member, const char* from, int64_t bytes) {
    Foreign& foreign = *member.foreign;
    const ForeignScope scope(member);
    if (scope.error() != MPI_SUCCESS) return scope.error();
    const RangesCard& card = member.line->attached;
    if (!foreign.attached.is_current(card))
        if (const Result seen = foreign.attached.fetch(card, foreign.memory); seen != Result::ok)
            return error_of(seen, foreign);
    return foreign.attached.holds(from, bytes) ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
}

int foreign_put(const ForeignItems& to, const Items& origin) {
    std::unique_ptr<char[]> packed;
    const char* data = static_cast<const char*>(origin.base) + origin.type->true_lb;
    if (!origin.type->contiguous) {
        packed = std::make_unique_for_overwrite<char[]>(to.bytes);
        origin.type->pack(origin.base, static_cast<uint64_t>(origin.count), 0, to.bytes, packed.get());
        data = packed.get();
    }
    const Foreign& foreign = *to.member.foreign;
    const ForeignScope scope(to.member);
    if (scope.error() != MPI_SUCCESS) return scope.error();
    return for_pieces(to, SIZE_MAX, [&](std::span<const iovec> pieces, size_t bytes) {
        const Result done = foreign.memory.write(pieces, data);
        data += bytes;
        return error_of(done, foreign);
    });
}

int foreign_get(const ForeignItems& from, const Items& origin) {
    std::unique_ptr<char[]> packed;
    char* data = static_cast<char*>(origin.base) + origin.type->true_lb;
    if (!origin.type->contiguous) {
        packed = std::make_unique_for_overwrite<char[]>(from.bytes);
        data = packed.get();
    }
    const Foreign& foreign = *from.member.foreign;
    const ForeignScope scope(from.member);
    if (scope.error() != MPI_SUCCESS) return scope.error();
    const int error = for_pieces(from, SIZE_MAX, [&](std::span<const iovec> pieces, size_t bytes) {
        const Result done = foreign.memory.read(data, pieces);
        data += bytes;
        return error_of(done, foreign);
    });
    if (error == MPI_SUCCESS && packed != nullptr)
        origin.type->unpack(origin.base, static_cast<uint64_t>(origin.count), 0, from.bytes, packed.get());
    return error;
}

// Read, changed here and written back, some elements at a time: only so long the guard is held.
int foreign_apply(const ForeignItems& on, MPI_Op op, const Datatype& element, const char* data, char* result) {
    constexpr size_t kBytes = 16 << 10;
    alignas(64) char copy[kBytes];
    const auto width = static_cast<size_t>(element.extent());
    const Foreign& foreign = *on.member.foreign;
    const ForeignScope scope(on.member);
    if (scope.error() != MPI_SUCCESS) return scope.error();
    const bool needs_old = result != nullptr || op != MPI_REPLACE;
    return for_pieces(on, kBytes / width * width, [&](std::span<const iovec> pieces, size_t bytes) {
        const Guarded guarded(&on.member.line->guard);
        if (needs_old)
            if (const Result seen = foreign.memory.read(copy, pieces); seen != Result::ok)
                return error_of(seen, foreign);
        apply(op, element, copy, data, result, bytes / width, {});
        if (data != nullptr) data += bytes;
        if (result != nullptr) result += bytes;
        return op == MPI_NO_OP ? MPI_SUCCESS : error_of(foreign.memory.write(pieces, copy), foreign);
    });
}

int foreign_compare_swap(const ForeignItems& on, const void* value, const void* compare, void* result) {
    const iovec at{reinterpret_cast<char*>(on.address) + on.type.true_lb, static_cast<size_t>(on.bytes)};
    char old[8];
    const Foreign& foreign = *on.member.foreign;
    const ForeignScope scope(on.member);
    if (scope.error() != MPI_SUCCESS) return scope.error();
    const Guarded guarded(&on.member.line->guard);
    if (const Result seen = foreign.memory.read(old, {&at, 1}); seen != Result::ok)
        return error_of(seen, foreign);
    if (std::memcmp(old, compare, on.bytes) == 0)
        if (const Result done = foreign.memory.write({&at, 1}, value); done != Result::ok)
            return error_of(done, foreign);
    std::memcpy(result, old, on.bytes);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::rma
