// SPDX-License-Identifier: BSD-2-Clause
// A program's session at viaduct-udpd of its NIC. From the program's greeting on the daemon watches the program's
// process and takes its port when it ends (daemon/dead_ports.hpp); once the daemon has answered, the program may add
// request filters (daemon_link.hpp). No state; any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/shm/fd.hpp"
#include "viaduct/types.hpp"

namespace viaduct::udp {

struct SessionRequest {
    NicAddress nic;      // whose daemon
    NicAddress data;     // where the program's frames come from
    uint64_t token = 0;  // that forwarded requests have to show
    std::optional<uint32_t> ended = {};  // flaws of the daemon that has ended with the last session, if any
};

// A connection to a daemon that has the program's first message. The daemon's answer comes there.
struct Greeting {
    Fd socket;       // invalid: no daemon has the message
    uid_t user = 0;  // of the daemon
};

struct Session {
    Fd socket;           // invalid: there is no session
    uint32_t flaws = 0;  // of the daemon (core/agent/own_limits.hpp)
};

// Greets the daemon of this user, or of root, if one runs and its queue has a place. Never waits.
Greeting greet_daemon(const SessionRequest&);

// Takes the answer to the greeting. Without one, or without an answer, it greets the daemon itself, and starts a daemon
// when there is none. There is no session if none opens by the deadline, or if `stop` became true; *why and *cure are
// for people.
Session open_session(const SessionRequest&, Greeting, int64_t deadline, const std::atomic<bool>& stop, std::string* why,
                     std::string* cure);

// Whether the daemon at the other end of that socket still has it open.
bool is_open_session(const Fd&);

}  // namespace viaduct::udp
