// SPDX-License-Identifier: BSD-2-Clause
// See window_pieces.hpp.
#include "mpi-adi/engine/io/window_pieces.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "mpi-adi/engine/io/access.hpp"

namespace viaduct::mpi::io {

bool WindowPieces::expect(size_t source, int64_t pieces, int64_t bytes) {
    if (pieces < 0 || bytes < pieces) return false;
    try {
        lists_[source].resize(static_cast<size_t>(pieces));
    } catch (const std::bad_alloc&) {
        return false;
    } catch (const std::length_error&) {
        return false;
    }
    data_[source].reset(new (std::nothrow) char[static_cast<size_t>(bytes)]);
    return data_[source] != nullptr;
}

bool WindowPieces::holds(size_t source, int64_t bytes, int64_t begin, int64_t end) const {
    for (const Piece& piece : lists_[source]) {
        if (piece.offset < begin || piece.length <= 0 || piece.length > end - piece.offset) return false;
        begin = piece.offset + piece.length;
        bytes -= piece.length;
    }
    return bytes == 0;
}

std::vector<WindowPieces::Placed> WindowPieces::sorted() {
    std::vector<Placed> all;
    for (size_t source = 0; source < lists_.size(); source++) {
        char* data = data_[source].get();
        for (const Piece& piece : lists_[source]) {
            all.push_back({piece.offset, piece.length, data, source});
            data += piece.length;
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    return all;
}

int WindowPieces::write(Storage& storage) {
    const std::vector<Placed> all = sorted();
    std::unique_ptr<char[]> joined;
    int64_t room = 0;
    for (size_t first = 0; first < all.size();) {
        size_t last = first + 1;
        const int64_t begin = all[first].offset;
        int64_t end = begin + all[first].length;
        for (; last < all.size() && all[last].offset <= end; last++)
            end = std::max(end, all[last].offset + all[last].length);
        const char* data = all[first].data;
        if (last - first > 1) {
            if (end - begin > room) {
                room = end - begin;
                joined.reset(new (std::nothrow) char[static_cast<size_t>(room)]);
                if (joined == nullptr) return MPI_ERR_NO_MEM;
            }
            for (size_t i = first; i < last; i++)
                std::memcpy(joined.get() + (all[i].offset - begin), all[i].data,
                            static_cast<size_t>(all[i].length));
            data = joined.get();
        }
        uint64_t written = 0;
        if (const int error = storage.write(data, static_cast<uint64_t>(end - begin), begin, &written))
            return error;
        first = last;
    }
    return MPI_SUCCESS;
}

int WindowPieces::read(Storage& storage) {
    const std::vector<Placed> all = sorted();
    std::vector<Wanted> wanted;
    wanted.reserve(all.size());
    for (const Placed& one : all) wanted.push_back({one.offset, one.length, one.data});
    std::vector<int64_t> got;
    const int error = read_pieces(storage, wanted, &got);
    // A source's pieces are in order, so all behind the first that is not whole are empty.
    std::fill(valid_.begin(), valid_.end(), 0);
    for (size_t i = 0; i < all.size(); i++) valid_[all[i].source] += got[i];
    return error;
}

}  // namespace viaduct::mpi::io
