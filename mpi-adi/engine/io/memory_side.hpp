// SPDX-License-Identifier: BSD-2-Clause
// The program's buffer as the stream of bytes that goes into the file or comes out of it: items with gaps are
// gathered and scattered, and in a representation that is not the memory's they are converted.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/io/representation.hpp"

namespace viaduct::mpi::io {

class MemorySide {
public:
    // The representation outlives this; the type is held.
    MemorySide(void* base, uint64_t count, const Datatype& type, const Representation& representation);
    ~MemorySide();
    MemorySide(const MemorySide&) = delete;
    MemorySide& operator=(const MemorySide&) = delete;

    // Before anything else; converts what is to be written. An MPI error class.
    [[nodiscard]] int begin(bool writes);
    // Bytes of the stream.
    uint64_t bytes() const { return bytes_; }
    // Where byte `at` of the stream lies, if the stream lies in one piece; else null.
    char* direct(uint64_t at) const { return direct_ == nullptr ? nullptr : direct_ + at; }
    void gather(uint64_t at, uint64_t length, char* to) const;
    void scatter(uint64_t at, uint64_t length, const char* from);
    // After `moved` bytes of the stream: *data is what they are in memory, in bytes of data. Converts what
    // was read.
    [[nodiscard]] int end(bool writes, uint64_t moved, uint64_t* data);

private:
    void* const base_;
    const uint64_t count_;
    const Datatype& type_;
    const Representation& representation_;
    uint64_t bytes_ = 0;
    char* direct_ = nullptr;
    std::unique_ptr<char[]> converted_;
};

}  // namespace viaduct::mpi::io
