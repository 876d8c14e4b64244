// SPDX-License-Identifier: BSD-2-Clause
// A descriptor of the library's that stays open between calls of the program. The program may close it in
// passing (closefrom(3), as daemons do) and be given its number for a file of its own: before the number is
// used, and before it is closed, the file behind it is looked at.
#pragma once

#include <sys/types.h>

#include <utility>

#include "core/shm/fd.hpp"

namespace viaduct {

class KeptFd {
public:
    KeptFd() = default;
    explicit KeptFd(Fd fd);
    KeptFd(KeptFd&& other) noexcept { *this = std::move(other); }
    KeptFd& operator=(KeptFd&& other) noexcept;
    ~KeptFd() { reset(); }

    // There has been one; it may be foreign meanwhile.
    bool valid() const { return fd_ >= 0; }
    int get() const { return fd_; }
    // The file is still the one that was given, by device and inode. Files without an inode of their own
    // (epoll, eventfd; pidfds before Linux 6.9) are told from all others but not from each other.
    bool is_ours() const;
    // The number where it is, else -1.
    int ours() const { return is_ours() ? fd_ : -1; }
    // Closes what is ours.
    void reset();
    // Leaves the number to others.
    void release() { fd_ = -1; }

private:
    int fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    mode_t kind_ = 0;
};

}  // namespace viaduct
