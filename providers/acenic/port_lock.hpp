// SPDX-License-Identifier: BSD-2-Clause
// A port belongs to one process: an application in exclusive mode, or the engine process of shared mode.
#pragma once

#include "core/shm/segment.hpp"
#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {

// A short name of the port: its network interface, or a hash of its text if it has none.
std::string short_name(const PortSpec&);

// The lock: held while this process has the port. A name in the abstract space of this network namespace, where the
// port is too. Invalid: errno says why; EADDRINUSE: another process has it.
Fd acquire_port_lock(const PortSpec&);

// What a process that never takes the lock sees of it. One thread.
class PortLockView {
public:
    // Made while the holder in question has the lock.
    explicit PortLockView(const PortSpec&);
    bool is_valid() const { return holder_.valid(); }
    // Whether another process has the lock now. While any process has the old holder's socket (a forked child), none
    // can.
    bool has_new_holder();

private:
    Fd look() const;

    const std::string address_;
    Fd holder_;  // connected to the socket that is the lock
};

}  // namespace viaduct::acenic
