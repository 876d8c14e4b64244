// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/kept_fd.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace viaduct {

KeptFd::KeptFd(Fd fd) {
    struct stat about {};
    const int saved_errno = errno;
    if (fd.valid() && ::fstat(fd.get(), &about) == 0) {
        device_ = about.st_dev;
        inode_ = about.st_ino;
        kind_ = about.st_mode & S_IFMT;
        fd_ = fd.release();
    }
    errno = saved_errno;
}

KeptFd& KeptFd::operator=(KeptFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::exchange(other.fd_, -1);
    device_ = other.device_;
    inode_ = other.inode_;
    kind_ = other.kind_;
    return *this;
}

bool KeptFd::is_ours() const {
    if (fd_ < 0) return false;
    const int saved_errno = errno;
    struct stat about {};
    const bool same = ::fstat(fd_, &about) == 0 && about.st_dev == device_ && about.st_ino == inode_ &&
                      (about.st_mode & S_IFMT) == kind_;
    errno = saved_errno;
    return same;
}

void KeptFd::reset() {
    if (is_ours()) {
        const int saved_errno = errno;
        ::close(fd_);
        errno = saved_errno;
    }
    fd_ = -1;
}

}  // namespace viaduct
