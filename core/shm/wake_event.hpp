// SPDX-License-Identifier: BSD-2-Clause
// Wakes a thread that sleeps in poll or epoll. Two sockets, not an eventfd: those have no inode of their own,
// by which an end that the program has closed could be told from a file of the program's (kept_fd.hpp).
#pragma once

#include "core/shm/kept_fd.hpp"

namespace viaduct {

class WakeEvent {
public:
    // Makes the sockets, in place of any that the program has closed. False: no descriptors are left.
    bool open();
    bool is_ours() const { return read_end_.is_ours() && write_end_.is_ours(); }
    // Readable from signal() on, until clear().
    int fd() const { return read_end_.get(); }
    void signal() const;
    void clear() const;
    void reset();

private:
    KeptFd read_end_, write_end_;
};

}  // namespace viaduct
