// SPDX-License-Identifier: BSD-2-Clause
// Opens a session at viaduct-udpd for a program that has connections and waits for no requests. A thread of its own
// waits for the daemon, which may have to be started, may be busy or stopped: connections go on meanwhile. Called under
// the engine's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "core/shm/fd.hpp"
#include "providers/udp/daemon_session.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::udp {

class SessionSeeker {
public:
    explicit SessionSeeker(const SessionRequest&);
    ~SessionSeeker();  // does not wait for the thread
    SessionSeeker(const SessionSeeker&) = delete;
    SessionSeeker& operator=(const SessionSeeker&) = delete;

    // Begins, unless the session is open, the thread is at it, or an attempt has failed within the last minute.
    void begin(UserAgent&, int64_t now);
    // The session, which is the caller's from now on; invalid: there is none.
    Fd take();

private:
    struct Search;
    static void run(void* search);
    const std::shared_ptr<Search> search_;  // the thread's too
};

}  // namespace viaduct::udp
