// SPDX-License-Identifier: BSD-2-Clause
// A view: which bytes of the file the program sees, as one stream of data. It is the filetype, repeated
// without end from a displacement on. Immutable; an access under way keeps the view it began with.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/io/representation.hpp"

namespace viaduct::mpi::io {

// Bytes [offset, offset + length) of the file.
struct Extent {
    int64_t offset;
    int64_t length;
};

class View {
public:
    // Types are committed, the displacement is in bytes and not negative. MPI_ERR_IO: displacements of a type
    // are negative, go backwards, or, where the file can be written, overlap; MPI_ERR_ARG: the filetype is
    // not made of etypes.
    [[nodiscard]] static int make(int64_t displacement, const Datatype& etype, const Datatype& filetype,
                                  std::shared_ptr<const Representation> representation, bool writable,
                                  std::shared_ptr<const View>* made);
    ~View();
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    int64_t displacement() const { return displacement_; }
    const Datatype& etype() const { return etype_; }
    const Datatype& filetype() const { return filetype_; }
    const Representation& representation() const { return *representation_; }

    // Bytes of data that an etype has in the file.
    int64_t etype_bytes() const { return etype_bytes_; }
    // Where byte `at` of the data lies in the file; `at` is not negative. False: behind the largest offset.
    [[nodiscard]] bool find_offset(int64_t at, int64_t* offset) const;
    // The same for a byte before an `end` that is in range.
    int64_t offset_of(int64_t at) const;
    // Bytes [0, end) of the data, and the item of the filetype behind them, lie before the largest offset.
    bool in_range(int64_t end) const;
    // Bytes of data that lie before byte `end` of the file; INT64_MAX where there are more.
    int64_t bytes_before(int64_t end) const;
    // No process has any of the data.
    bool empty() const { return layout_.size == 0; }
    // The data are one piece.
    bool contiguous() const { return contiguous_; }
    // Data that follow each other lie behind each other, and no byte belongs to two of them.
    bool ordered() const { return ordered_; }
    // Bytes in one piece, on average.
    int64_t piece_bytes() const { return piece_bytes_; }

private:
    friend class ExtentCursor;
    View(int64_t displacement, const Datatype& etype, const Datatype& filetype, const Datatype& layout,
         std::shared_ptr<const Representation> representation);

    const int64_t displacement_;
    const Datatype& etype_;
    const Datatype& filetype_;
    const Datatype& layout_;  // the filetype as it lies in the file
    const std::shared_ptr<const Representation> representation_;
    int64_t etype_bytes_ = 0;
    int64_t piece_bytes_ = 0;
    int64_t item_end_ = 0;  // of one item: its last byte of data is before this, from where the item begins
    bool contiguous_ = false;
    bool ordered_ = false;
};

// Walks the extents of bytes [at, end) of the data. What follows without a gap is one extent.
class ExtentCursor {
public:
    ExtentCursor(const View& view, int64_t at, int64_t end);
    // False: there are no more.
    bool next(Extent* extent);

private:
    bool step(Extent* extent);

    const View& view_;
    int64_t left_;
    int64_t tile_ = 0;  // where the filetype begins in the file
    size_t run_ = 0;
    MPI_Count piece_ = 0;  // of the run
    MPI_Aint within_ = 0;  // bytes of the piece that are passed
    Extent ahead_{0, 0};   // a step that did not belong to the last extent
};

}  // namespace viaduct::mpi::io
