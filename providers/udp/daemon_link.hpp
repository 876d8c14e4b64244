// SPDX-License-Identifier: BSD-2-Clause
// A program's way to viaduct-udpd of its NIC: made when it first waits for requests or has its first connection, made
// again when that process has ended. Under the engine's lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/shm/segment.hpp"
#include "providers/udp/daemon/protocol.hpp"
#include "providers/udp/daemon_session.hpp"
#include "providers/udp/session_seeker.hpp"

namespace viaduct::udp {

class DaemonLink {
public:
    // data: where the program's frames come from. token: what forwarded requests have to show.
    DaemonLink(const NicAddress& nic, const NicAddress& data, uint64_t token)
        : request_{nic, data, token}, seeker_(request_) {}

    // The program has a connection, whose peer must see the program's end. Does not wait for the daemon.
    void attend(UserAgent&, int64_t now);
    // Adds a request filter. Its number; 0: no daemon.
    uint32_t add(FilterMessage);
    // Why the last one was not added, for people.
    void why_not_added(std::string* why, std::string* cure) const {
        *why = why_;
        *cure = cure_;
    }
    void remove(uint32_t number, bool release_matches);
    // The daemon has confirmed that filter.
    void note_known(uint32_t number) { known_ = number; }
    // All filters are known there.
    bool is_known() const { return known_ == asked_; }
    // Looks now and then whether the process is still there, and finds another one if not. Cheap otherwise.
    void look_after(int64_t now);
    bool is_from_daemon(const Envelope& e) const { return e.mark == Envelope::kMark && e.token == request_.token; }

private:
    bool find(int64_t deadline);
    bool is_alive() const { return is_open_session(socket_); }
    bool tell(const FilterMessage&);

    const SessionRequest request_;
    SessionSeeker seeker_;
    UserAgent* attended_by_ = nullptr;  // null: there has been no connection yet
    Fd socket_;
    std::map<uint32_t, FilterMessage> filters_;
    uint32_t last_ = 0, asked_ = 0, known_ = 0;
    int64_t looked_at_ = 0;
    std::string why_, cure_;
};

}  // namespace viaduct::udp
