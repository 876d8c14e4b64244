// SPDX-License-Identifier: BSD-2-Clause
// Anonymous shared memory (memfd, sealed against shrinking and growing). Nothing
// here has a name in a file system, so nothing can stay behind when processes die.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/shm/fd.hpp"
#include "core/shm/kept_fd.hpp"

namespace viaduct {

// The longest file this process may make (RLIMIT_FSIZE), in bytes. A memfd counts as one.
uint64_t largest_file();

// Gives a new file that size. False and errno when that is impossible; never by the signal (SIGXFSZ) that
// ends a program where a file grows beyond the limit.
bool set_size(int fd, uint64_t bytes);

// One mapping of shared memory with its descriptor. Move-only; unmaps and closes at the end. Mappings are not
// inherited by fork (MADV_DONTFORK): a child can neither keep them alive nor disturb them.
class Segment {
public:
    // sparse: read and write, for segments of which few pages exist; none is made by mapping them, not even
    // where the program has locked all its future memory (mlockall).
    enum class Access { read_write, read_only, sparse };

    Segment() = default;
    // New sealed memfd of `bytes` (rounded up to pages), zeroed. `label` shows up in /proc for people.
    // `others` is what other processes may ever map: with read_only only this mapping can write.
    static Segment create(const char* label, size_t bytes, Access others = Access::read_write);
    // The same without a mapping of our own: room for memory that is mapped in parts. Not valid(), but fd()
    // is.
    static Segment reserve(const char* label, size_t bytes);
    // Maps a descriptor received from elsewhere. Refuses (invalid segment) unless it is a memfd sealed
    // against shrinking with at least `bytes`: otherwise a peer could make us fault. Takes the descriptor;
    // keeps it only if keep_fd.
    static Segment map(Fd fd, size_t bytes, Access access, bool keep_fd = false);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&& other) noexcept;
    ~Segment() { reset(); }
    void reset();

    bool valid() const { return address_ != nullptr; }
    std::byte* data() const { return address_; }
    size_t size() const { return size_; }
    int fd() const { return fd_.get(); }
    // It has a descriptor and the program has not closed it.
    bool has_fd() const { return fd_.is_ours(); }
    // A second descriptor for the same memory. With read_only its receiver cannot map it writable: given
    // only for segments created that way, since nothing else could keep the promise.
    Fd duplicate(Access access) const;
    void drop_fd() { fd_.reset(); }

private:
    KeptFd fd_;
    std::byte* address_ = nullptr;
    size_t size_ = 0;
};

}  // namespace viaduct
