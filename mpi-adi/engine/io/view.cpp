// SPDX-License-Identifier: BSD-2-Clause
// See view.hpp.
#include "mpi-adi/engine/io/view.hpp"

#include <algorithm>

namespace viaduct::mpi::io {
namespace {

struct Shape {
    bool forward = true;   // no displacement is negative or smaller than one before it
    bool disjoint = true;  // and nothing lies on anything before it
    MPI_Count pieces = 0;
    MPI_Aint end = 0;
};

// A repeated piece that goes forwards may still lie on the one before.
Shape shape_of(const Datatype& type) {
    Shape shape;
    MPI_Aint last = 0;
    for (const Run& run : type.runs) {
        if (run.length == 0 || run.count == 0) continue;
        shape.forward = shape.forward && run.offset >= last && (run.count == 1 || run.stride >= 0);
        shape.disjoint =
            shape.disjoint && run.offset >= shape.end && (run.count == 1 || run.stride >= run.length);
        last = run.offset + (run.count - 1) * run.stride;
        shape.end = std::max(shape.end, last + run.length);
        shape.pieces += run.count;
    }
    return shape;
}

// The last run that begins at or before byte `within` of an item.
size_t run_of(const Datatype& layout, MPI_Count within) {
    const auto after = std::upper_bound(layout.runs.begin(), layout.runs.end(), within,
                                        [](MPI_Count at, const Run& run) { return at < run.packed; });
    return static_cast<size_t>(after - layout.runs.begin()) - 1;
}

// Bytes of one item that lie before byte `end` of it.
MPI_Count item_bytes_before(const Datatype& layout, MPI_Aint end) {
    MPI_Count bytes = 0;
    for (const Run& run : layout.runs) {
        if (run.offset >= end) break;
        const MPI_Aint into = end - run.offset;
        const MPI_Count whole = run.stride > 0       ? std::min<MPI_Count>(into / run.stride, run.count)
                                : into >= run.length ? run.count
                                                     : 0;
        bytes += whole * run.length;
        if (whole < run.count) bytes += std::min<MPI_Aint>(into - whole * run.stride, run.length);
    }
    return bytes;
}

}  // namespace

int View::make(int64_t displacement, const Datatype& etype, const Datatype& filetype,
               std::shared_ptr<const Representation> representation, bool writable,
               std::shared_ptr<const View>* made) {
    for (const Datatype* type : {&etype, &filetype}) {
        const Shape shape = shape_of(*type);
        if (!shape.forward || (writable && !shape.disjoint)) return MPI_ERR_IO;
    }
    const Datatype* layout = layout_in_file(filetype, *representation);
    if (layout == nullptr) return MPI_ERR_UNSUPPORTED_DATAREP;
    std::shared_ptr<View> view(new View(displacement, etype, filetype, *layout, std::move(representation)));
    view->etype_bytes_ = view->representation_->bytes_of(etype);
    if (view->etype_bytes_ < 0) return MPI_ERR_CONVERSION;
    if (layout->size > 0 && (view->etype_bytes_ == 0 || layout->size % view->etype_bytes_ != 0))
        return MPI_ERR_ARG;
    if (layout->size > 0 && layout->extent() <= 0) return MPI_ERR_IO;

    const Shape shape = shape_of(*layout);
    view->contiguous_ = layout->contiguous && layout->size > 0;
    view->item_end_ = shape.end;
    view->piece_bytes_ = shape.pieces > 0 ? layout->size / shape.pieces : 0;
    // The next item begins behind this one; types may be resized to anything.
    view->ordered_ = shape.disjoint &&
                     (layout->runs.empty() || shape.end - layout->runs.front().offset <= layout->extent());
    *made = std::move(view);
    return MPI_SUCCESS;
}

View::View(int64_t displacement, const Datatype& etype, const Datatype& filetype, const Datatype& layout,
           std::shared_ptr<const Representation> representation)
    : displacement_(displacement),
      etype_(etype),
      filetype_(filetype),
      layout_(layout),
      representation_(std::move(representation)) {
    etype_.retain();
    filetype_.retain();
}

View::~View() {
    etype_.release();
    filetype_.release();
    layout_.release();
}

// No summand is negative (make()), so a part that is too large makes the whole too large.
bool View::find_offset(int64_t at, int64_t* offset) const {
    int64_t tile = 0, within_tile = 0;
    if (contiguous_) {
        tile = at;
        within_tile = layout_.true_lb;
    } else if (layout_.size > 0) {
        const MPI_Count within = at % layout_.size;
        const Run& run = layout_.runs[run_of(layout_, within)];
        const MPI_Count into = within - run.packed;
        if (__builtin_mul_overflow(at / layout_.size, layout_.extent(), &tile)) return false;
        within_tile = run.offset + into / run.length * run.stride + into % run.length;
    }
    return !__builtin_add_overflow(displacement_, tile, &tile) && !__builtin_add_overflow(tile, within_tile, offset);
}

int64_t View::offset_of(int64_t at) const {
    int64_t offset = 0;
    return find_offset(at, &offset) ? offset : INT64_MAX;
}

bool View::in_range(int64_t end) const {
    if (layout_.size == 0) return true;
    constexpr __int128 kMost = INT64_MAX;
    const MPI_Aint extent = layout_.extent();
    // An item that is resized may have data behind its extent.
    const MPI_Aint more = std::max<MPI_Aint>(item_end_ - extent, 0);
    return static_cast<__int128>(end / layout_.size + 2) * extent + displacement_ + more <= kMost;
}

int64_t View::bytes_before(int64_t end) const {
    if (layout_.size == 0) return 0;
    const MPI_Aint first = contiguous_ ? layout_.true_lb : layout_.runs.front().offset;
    const int64_t behind_begin = end - displacement_;  // neither is negative
    if (behind_begin <= first) return 0;
    const int64_t behind = behind_begin - first;
    if (contiguous_) return behind;
    int64_t bytes = 0;
    const bool too_many =
        __builtin_mul_overflow(behind / layout_.extent(), layout_.size, &bytes) ||
        __builtin_add_overflow(bytes, item_bytes_before(layout_, behind % layout_.extent() + first), &bytes);
    return too_many ? INT64_MAX : bytes;
}

ExtentCursor::ExtentCursor(const View& view, int64_t at, int64_t end) : view_(view), left_(end - at) {
    const Datatype& layout = view.layout_;
    if (layout.size == 0) left_ = 0;
    if (left_ <= 0) return;
    if (view.contiguous_) {
        tile_ = view.offset_of(at);
        return;
    }
    tile_ = view.displacement_ + at / layout.size * layout.extent();
    const MPI_Count within = at % layout.size;
    run_ = run_of(layout, within);
    const Run& run = layout.runs[run_];
    piece_ = (within - run.packed) / run.length;
    within_ = (within - run.packed) % run.length;
}

bool ExtentCursor::step(Extent* extent) {
    if (left_ <= 0) return false;
    if (view_.contiguous_) {
        *extent = {tile_, left_};
        left_ = 0;
        return true;
    }
    const Datatype& layout = view_.layout_;
    const Run& run = layout.runs[run_];
    const int64_t length = std::min<int64_t>(run.length - within_, left_);
    *extent = {tile_ + run.offset + piece_ * run.stride + within_, length};
    left_ -= length;
    within_ = 0;
    if (++piece_ == run.count) {
        piece_ = 0;
        if (++run_ == layout.runs.size()) {
            run_ = 0;
            tile_ += layout.extent();
        }
    }
    return true;
}

bool ExtentCursor::next(Extent* extent) {
    if (ahead_.length > 0) {
        *extent = ahead_;
        ahead_.length = 0;
    } else if (!step(extent)) {
        return false;
    }
    while (step(&ahead_)) {
        if (ahead_.offset != extent->offset + extent->length) return true;
        extent->length += ahead_.length;
    }
    ahead_.length = 0;
    return true;
}

}  // namespace viaduct::mpi::io
