// SPDX-License-Identifier: BSD-2-Clause
// The control socket of a memif link, kept from DPDK's interrupt thread. When the driver reads there that the other end
// has ended, it unmaps the rings at once, whatever burst the port's thread is in. While a link is up, the port's own
// thread looks at the socket between two bursts, and stops the driver's device when the link is over.
#pragma once

#include "core/shm/fd.hpp"

namespace viaduct::acenic {

class MemifControl {
public:
    // Takes the socket that the driver has under this number, and puts a file without events there. On the interrupt
    // thread, so that the driver is in no callback of it. False: the driver has it still.
    bool take(int driver_fd);
    // Puts the socket back under the driver's number. The driver stops its device next, on the same thread.
    void give_back();
    bool is_held() const { return socket_.valid(); }
    // The other end has ended, or has sent a message: once a link is up, a disconnection is the only message of memif.
    bool is_over() const;

private:
    int driver_fd_ = -1;
    Fd socket_;
};

}  // namespace viaduct::acenic
