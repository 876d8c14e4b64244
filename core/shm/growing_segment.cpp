// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/growing_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/shm/own_mapping.hpp"

namespace viaduct {

namespace {

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

GrowingSegment::GrowingSegment(const char* label, size_t bytes)
    : first_(Segment::create(label, bytes, Segment::Access::read_only, Segment::Size::growing)) {
    if (!first_.valid()) return;
    size_ = first_.size();
    last_page_ = first_.data() + size_ - page_bytes();
}

std::byte* GrowingSegment::grow(size_t bytes) {
    const size_t page = page_bytes();
    if (bytes == 0 || bytes % page != 0 || size_ + bytes > largest_file() || !first_.has_fd()) return nullptr;
    void* const place = map_own(page + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (place == nullptr) return nullptr;
    // A page that cannot be had fails here, not at the first access.
    if (::fallocate(first_.fd(), 0, static_cast<off_t>(size_), static_cast<off_t>(bytes)) != 0) {
        ::munmap(place, page + bytes);
        return nullptr;
    }
    // The seal refuses each new writable mapping, also this process' own. mremap(2) with an old length of 0 makes a
    // second and longer one of the mapping that is there, from the file's last page on.
    void* const mapped = ::mremap(last_page_, 0, page + bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (mapped == MAP_FAILED || ::madvise(mapped, page + bytes, MADV_DONTFORK) != 0) {
        ::munmap(place, page + bytes);
        return nullptr;
    }
    size_ += bytes;
    last_page_ = static_cast<std::byte*>(mapped) + bytes;
    return static_cast<std::byte*>(mapped) + page;
}

}  // namespace viaduct
