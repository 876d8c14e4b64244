// SPDX-License-Identifier: BSD-2-Clause
// A program's way to viaduct-udpd of its NIC: made when it first waits for requests or has its first connection, made
// again when that process has ended. Under the engine's lock; no call waits for the daemon.
#pragma once

#include <cstdint>
#include <string>

#include "providers/udp/daemon/protocol.hpp"
#include "providers/udp/daemon_session.hpp"
#include "providers/udp/session_keeper.hpp"

namespace viaduct::udp {

class DaemonLink {
public:
    // data: the source address of the program's frames. token: the number in each forwarded request.
    DaemonLink(const NicAddress& nic, const NicAddress& data, uint64_t token)
        : token_(token), keeper_({nic, data, token}) {}

    // The agent by which the thread is started. Called before the other calls.
    void use(UserAgent& agent) { agent_ = &agent; }
    // The program has a connection, whose peer must see the program's end.
    void attend(int64_t now);
    // Adds a request filter. Its number, never 0.
    uint32_t add(FilterMessage, int64_t now);
    void remove(uint32_t number, bool release_matches);
    bool is_refused(uint32_t number) const { return keeper_.is_refused(number); }
    // Why the last one was refused, for people.
    void why_refused(std::string* why, std::string* cure) const { keeper_.why_refused(why, cure); }
    // The daemon has confirmed that filter.
    void note_known(uint32_t number) { known_ = number; }
    // All filters are known there.
    bool is_known() const { return known_ == asked_; }
    // Looks now and then whether the process is still there, and finds another one if not. Cheap otherwise.
    void look_after(int64_t now);
    bool is_from_daemon(const Envelope& e) const { return e.mark == Envelope::kMark && e.token == token_; }

private:
    const uint64_t token_;
    SessionKeeper keeper_;
    UserAgent* agent_ = nullptr;
    bool in_use_ = false;  // there has been a filter or a connection
    uint32_t last_ = 0, asked_ = 0, known_ = 0;
    int64_t looked_at_ = 0;
};

}  // namespace viaduct::udp
