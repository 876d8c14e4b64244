// SPDX-License-Identifier: BSD-2-Clause
// Wakes a thread that sleeps in poll or epoll. Two sockets, not an eventfd: those have no inode of their own,
// by which an end that the program has closed could be told from a file of the program's (kept_fd.hpp).
#pragma once

#include "core/shm/kept_fd.hpp"

namespace viaduct {

class Bell {
public:
    // Makes a new one, in place of one that the program has closed. False: no descriptors are left.
    bool hang();
    bool is_ours() const { return ear_.is_ours() && hand_.is_ours(); }
    // Readable once rung.
    int fd() const { return ear_.get(); }
    void ring() const;
    // No longer readable.
    void hush() const;
    void reset();

private:
    KeptFd ear_, hand_;
};

}  // namespace viaduct
