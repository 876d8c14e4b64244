// SPDX-License-Identifier: BSD-2-Clause
// See shared_region.hpp.
#include "mpi-adi/engine/rma/shared_region.hpp"

#include <new>

namespace viaduct::mpi::rma {
namespace {

constexpr size_t kPage = 4096;

size_t to_page(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

SharedRegion::SharedRegion(const std::vector<int64_t>& sizes, bool apart)
    : bytes_(to_page(sizeof(Head) + sizeof(Meeting) + sizes.size() * sizeof(MemberLine))) {
    for (const int64_t size : sizes) {
        offsets_.push_back(bytes_);
        bytes_ += apart ? to_page(static_cast<size_t>(size)) : static_cast<size_t>(size);
    }
    bytes_ = to_page(bytes_);
}

bool SharedRegion::create(MemoryOffer* offer) {
    segment_ = offer_memory("cmpi-win", bytes_, offer);
    if (!segment_.valid()) return false;
    place();
    new (&meeting()) Meeting();
    for (size_t i = 0; i < offsets_.size(); i++) new (&lines_[i]) MemberLine();
    return true;
}

bool SharedRegion::open(const MemoryOffer& offer) {
    if (open_offered(offer, bytes_, &segment_) != Opened::ok) return false;
    place();
    return true;
}

void SharedRegion::place() {
    lines_ = reinterpret_cast<MemberLine*>(segment_.data() + sizeof(Head) + sizeof(Meeting));
}

}  // namespace viaduct::mpi::rma
