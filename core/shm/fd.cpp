// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/fd.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace viaduct {

void Fd::reset() {
    if (fd_ < 0) return;
    const int saved_errno = errno;
    ::close(fd_);
    errno = saved_errno;
    fd_ = -1;
}

int above_stdio(int fd) {
    if (fd < 0 || fd >= kFirstFd) return fd;
    const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFd);
    const int saved_errno = errno;
    ::close(fd);
    errno = saved_errno;
    return higher;
}

bool descriptors_left(int count) {
    const Fd one(::eventfd(0, EFD_CLOEXEC));
    if (!one.valid()) return errno != EMFILE && errno != ENFILE;
    return count <= 1 || descriptors_left(count - 1);
}

}  // namespace viaduct
