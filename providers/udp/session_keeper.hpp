// SPDX-License-Identifier: BSD-2-Clause
// Keeps a session at viaduct-udpd open, with the request filters of the program there. The daemon may have to be
// started, may be busy or stopped, or may end: a thread waits for it, and ends when the daemon has all filters. No call
// here waits, so the engine's lock may be held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "providers/udp/daemon/protocol.hpp"
#include "providers/udp/daemon_session.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::udp {

class SessionKeeper {
public:
    explicit SessionKeeper(const SessionRequest&);
    ~SessionKeeper();  // does not wait for the thread
    SessionKeeper(const SessionKeeper&) = delete;
    SessionKeeper& operator=(const SessionKeeper&) = delete;

    // A session is wanted from now on, with or without filters.
    void want();
    // Adds a filter under a number that rises from call to call.
    void add(const FilterMessage&, int64_t now);
    void remove(uint32_t number, bool release_matches);
    // No daemon could be had for that filter.
    bool is_refused(uint32_t number) const;
    // Why, of the last time, for people.
    void why_refused(std::string* why, std::string* cure) const;

    // Starts the thread when there is something to do: at once after add(), later after a failure.
    void look_after(UserAgent&, int64_t now);

private:
    struct State;
    static void run(void* state);
    const std::shared_ptr<State> state_;  // the thread's too
};

}  // namespace viaduct::udp
