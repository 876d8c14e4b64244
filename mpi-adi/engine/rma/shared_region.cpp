// SPDX-License-Identifier: BSD-2-Clause
// See shared_region.hpp.
#include "mpi-adi/engine/rma/shared_region.hpp"

#include <fcntl.h>

#include <new>
#include <string>

namespace viaduct::mpi::rma {
namespace {

constexpr size_t kPage = 4096;

size_t to_page(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

SharedRegion::SharedRegion(const std::vector<int64_t>& sizes, bool apart)
    : bytes_(to_page(sizeof(Meeting) + sizes.size() * sizeof(MemberLine))) {
    for (const int64_t size : sizes) {
        offsets_.push_back(bytes_);
        bytes_ += apart ? to_page(static_cast<size_t>(size)) : static_cast<size_t>(size);
    }
    bytes_ = to_page(bytes_);
}

bool SharedRegion::create() {
    segment_ = Segment::create("cmpi-win", bytes_);
    if (!segment_.valid()) return false;
    new (segment_.data()) Meeting();
    for (size_t i = 0; i < offsets_.size(); i++)
        new (segment_.data() + sizeof(Meeting) + i * sizeof(MemberLine)) MemberLine();
    place();
    return true;
}

bool SharedRegion::open(int pid, int fd) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    Fd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened.valid()) return false;
    segment_ = Segment::map(std::move(opened), bytes_, Segment::Access::read_write);
    if (!segment_.valid()) return false;
    place();
    return true;
}

void SharedRegion::place() { lines_ = reinterpret_cast<MemberLine*>(segment_.data() + sizeof(Meeting)); }

}  // namespace viaduct::mpi::rma
