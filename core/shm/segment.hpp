// SPDX-License-Identifier: BSD-2-Clause
// Anonymous shared memory: a memfd, sealed against shrinking and growing. It has no name in a file system, so nothing
// stays behind when processes die (spec/architecture 7). One thread at a time uses a Segment; what is in the memory has
// rules of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/shm/fd.hpp"
#include "core/shm/kept_fd.hpp"

namespace viaduct {

// The longest file this process may make (RLIMIT_FSIZE), in bytes. A memfd counts as one.
uint64_t largest_file();

// Gives a new file that size. False and errno when that is impossible. A size beyond largest_file() is EFBIG, without
// the signal SIGXFSZ.
bool set_size(int fd, uint64_t bytes);

// One mapping of shared memory with its descriptor. Move-only; unmaps and closes at the end. The mapping has
// MADV_DONTFORK: a child of a later fork() does not have it. A fork() of another thread between mmap() and madvise()
// gives it to the child. A child always has a copy of the descriptor, until it calls exec() (close-on-exec).
class Segment {
public:
    // sparse: read and write, for segments of which few pages exist. Mapping makes no page, also where the program has
    // locked all its future memory (mlockall).
    enum class Access { read_write, read_only, sparse };
    // growing: any process with a descriptor may make the file longer (GrowingSegment).
    enum class Size { fixed, growing };

    Segment() = default;
    // New sealed memfd of `bytes` (rounded up to pages), zeroed, and its mapping. `label` appears in /proc/PID/maps.
    // `others` is what other processes may ever map: with read_only only this mapping can write.
    static Segment create(const char* label, size_t bytes, Access others = Access::read_write,
                          Size size = Size::fixed);
    // A sealed memfd of exactly `bytes`, not mapped: for memory that is mapped in parts. valid() is false; fd() is the
    // descriptor, or -1.
    static Segment reserve(const char* label, size_t bytes);
    // Maps a descriptor of another process. The result is not valid() unless it is a memfd of at least `bytes`, sealed
    // against shrinking and not of huge pages: an access to any other may raise SIGBUS. Takes the descriptor; keeps it
    // only if keep_fd.
    static Segment map(Fd fd, size_t bytes, Access access, bool keep_fd = false);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&& other) noexcept;
    ~Segment() { reset(); }
    void reset();

    bool valid() const { return address_ != nullptr; }
    std::byte* data() const { return address_; }
    size_t size() const { return size_; }
    int fd() const { return fd_.get(); }
    // There is a descriptor, and it is still the library's file: the program has not closed it (kept_fd.hpp).
    bool has_fd() const { return fd_.is_ours(); }
    // Another descriptor of the same memory; not valid() when there is none. With read_only its receiver cannot map it
    // writable: only the seal of create(..., read_only) ensures that, so other segments give none.
    Fd duplicate(Access access) const;
    void drop_fd() { fd_.reset(); }
    // In a forked child, which does not have the memory: closes the descriptor and unmaps nothing, because another
    // mapping may lie at that place.
    void reset_after_fork();

private:
    KeptFd fd_;
    std::byte* address_ = nullptr;
    size_t size_ = 0;
};

}  // namespace viaduct
