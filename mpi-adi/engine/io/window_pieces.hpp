// SPDX-License-Identifier: BSD-2-Clause
// What an aggregator has to do in one window of the file: the pieces of all processes, and their data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi-adi/engine/io/storage.hpp"

namespace viaduct::mpi::io {

// Bytes [offset, offset + length) of the file, as processes tell them each other.
struct Piece {
    int64_t offset;
    int64_t length;
};

class WindowPieces {
public:
    explicit WindowPieces(size_t sources) : lists_(sources), data_(sources), valid_(sources) {}

    // Room for what a source tells, before it is received. False: no memory.
    [[nodiscard]] bool expect(size_t source, int64_t pieces, int64_t bytes);
    std::vector<Piece>& list(size_t source) { return lists_[source]; }
    char* data(size_t source) { return data_[source].get(); }

    // A peer may send anything: pieces must lie in the window, in order, and make up the bytes that were
    // told.
    bool holds(size_t source, int64_t bytes, int64_t begin, int64_t end) const;

    // All pieces at once; those that touch are one access. MPI error classes.
    [[nodiscard]] int write(Storage& storage);
    [[nodiscard]] int read(Storage& storage);
    // After read(): how many bytes of a source's data are there, before the end of the file.
    int64_t valid(size_t source) const { return valid_[source]; }

private:
    struct Placed {
        int64_t offset, length;
        char* data;
        size_t source;
    };
    // In the order of the file; of pieces that overlap, that of the higher rank comes later.
    std::vector<Placed> sorted();

    std::vector<std::vector<Piece>> lists_;
    std::vector<std::unique_ptr<char[]>> data_;
    std::vector<int64_t> valid_;
};

}  // namespace viaduct::mpi::io
