// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "core/shm/own_mapping.hpp"

namespace viaduct {

namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3: never executable; some hosts insist on it
#endif

int new_memfd(const char* label) {
    int fd = ::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) fd = ::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return above_stdio(fd);
}

std::byte* map_shared(int fd, size_t bytes, Segment::Access access) {
    const bool sparse = access == Segment::Access::sparse;
    const int protection = sparse                                  ? PROT_NONE
                           : access == Segment::Access::read_write ? PROT_READ | PROT_WRITE
                                                                   : PROT_READ;
    void* address = map_own(bytes, protection, MAP_SHARED, fd);
    if (address == nullptr) return nullptr;
    // Pages that cannot be accessed are not made; unlocked, they are not made either when they can.
    if (sparse) ::munlock(address, bytes);
    if ((sparse && ::mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) ||
        ::madvise(address, bytes, MADV_DONTFORK) != 0) {
        ::munmap(address, bytes);
        return nullptr;
    }
    return static_cast<std::byte*>(address);
}

// Huge pages are few: where the owner has punched one out again, an access finds none and raises SIGBUS. Only a file of
// huge pages refuses to be mapped from its second small page on. A file with transparent huge pages allows both: the
// kernel splits them. fstat() does not tell the two apart, and a filter of system calls may forbid fstatfs().
bool has_huge_pages(int fd) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    void* second = map_own(page, PROT_NONE, MAP_SHARED, fd, static_cast<off_t>(page));
    if (second != nullptr) ::munmap(second, page);
    return second == nullptr;
}

}  // namespace

uint64_t largest_file() {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

bool set_size(int fd, uint64_t bytes) {
    if (bytes <= largest_file()) return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
    errno = EFBIG;
    return false;
}

Segment Segment::create(const char* label, size_t bytes, Access others, Size size) {
    Segment none;
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes == 0 || bytes > static_cast<size_t>(std::numeric_limits<off_t>::max()) - page) return none;
    const size_t rounded = (bytes + page - 1) / page * page;

    Fd fd(new_memfd(label));
    if (!fd.valid() || !set_size(fd.get(), rounded)) return none;
    // Our own mapping first: FUTURE_WRITE lets existing writable mappings live and forbids every later one,
    // also those made by opening the descriptor again through /proc.
    std::byte* address = map_shared(fd.get(), rounded, Access::read_write);
    if (address == nullptr) return none;
    Segment made;
    made.address_ = address;
    made.size_ = rounded;
    const int seals = (size == Size::fixed ? kFixedSize : F_SEAL_SHRINK) | F_SEAL_SEAL |
                      (others == Access::read_only ? F_SEAL_FUTURE_WRITE : 0);
    if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return none;
    made.fd_ = KeptFd(std::move(fd));
    return made;
}

Segment Segment::reserve(const char* label, size_t bytes) {
    Segment made;
    Fd fd(new_memfd(label));
    if (fd.valid() && set_size(fd.get(), bytes) && ::fcntl(fd.get(), F_ADD_SEALS, kFixedSize | F_SEAL_SEAL) == 0)
        made.fd_ = KeptFd(std::move(fd));
    return made;
}

Segment Segment::map(Fd fd, size_t bytes, Access access, bool keep_fd) {
    Segment none;
    if (!fd.valid() || bytes == 0) return none;
    // Only a memfd has seals of its own; one that cannot shrink cannot make us fault (spec/architecture 7).
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return none;
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0 || about.st_size < 0 || static_cast<uint64_t>(about.st_size) < bytes)
        return none;
    if (has_huge_pages(fd.get())) return none;

    Segment mapped;
    mapped.address_ = map_shared(fd.get(), bytes, access);
    if (mapped.address_ == nullptr) return none;
    mapped.size_ = bytes;
    if (keep_fd) mapped.fd_ = KeptFd(std::move(fd));
    return mapped;
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      address_(std::exchange(other.address_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = std::move(other.fd_);
        address_ = std::exchange(other.address_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void Segment::reset() {
    if (address_ != nullptr) ::munmap(address_, size_);
    address_ = nullptr;
    size_ = 0;
    fd_.reset();
}

void Segment::reset_after_fork() {
    address_ = nullptr;
    size_ = 0;
    fd_.reset();
}

Fd Segment::duplicate(Access access) const {
    if (!fd_.is_ours()) return Fd();
    if (access == Access::read_only) {
        const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
        if (seals < 0 || (seals & F_SEAL_FUTURE_WRITE) == 0) return Fd();
    }
    return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, kFirstFd));
}

}  // namespace viaduct
