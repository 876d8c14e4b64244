// SPDX-License-Identifier: BSD-2-Clause
// Shared memory that one process writes, that others map for reading only, and that grows. One thread at a time uses a
// GrowingSegment; the words in its memory have rules of their own.
#pragma once

#include <cstddef>

#include "core/shm/segment.hpp"

namespace viaduct {

class GrowingSegment {
public:
    GrowingSegment() = default;
    // Not valid(): there is no memory, the process may not have a memfd, or the kernel has no F_SEAL_FUTURE_WRITE
    // (before Linux 5.1; the region table needs it, too, and so does every NIC). The first bytes are at data(), zeroed.
    // `label` appears in /proc/PID/maps.
    GrowingSegment(const char* label, size_t bytes);
    // The memory of grow() stays mapped.
    ~GrowingSegment() = default;
    GrowingSegment(GrowingSegment&&) noexcept = default;
    GrowingSegment& operator=(GrowingSegment&&) noexcept = default;

    bool valid() const { return first_.valid(); }
    std::byte* data() const { return first_.data(); }
    // The length of the file, in bytes: a multiple of the page.
    size_t size() const { return size_; }
    // Adds `bytes`, a multiple of the page, at the end of the file. They are zeroed, and their pages exist: no access
    // to them fails. The place in memory is another one than data(), with MADV_DONTFORK. Null: there is no memory, the
    // file would be longer than RLIMIT_FSIZE, or the program has closed the descriptor.
    std::byte* grow(size_t bytes);
    // Another descriptor, for reading only. Not valid(): the program has closed the first one.
    Fd for_reading() const { return first_.duplicate(Segment::Access::read_only); }
    // In a forked child, which does not have the memory: closes the descriptor. Not valid() afterwards.
    void reset_after_fork() { first_.reset_after_fork(); }

private:
    Segment first_;
    size_t size_ = 0;
    std::byte* last_page_ = nullptr;  // of the file, as this process has it mapped
};

}  // namespace viaduct
