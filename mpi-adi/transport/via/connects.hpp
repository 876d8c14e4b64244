// SPDX-License-Identifier: BSD-2-Clause
// How lanes of one NIC are connected: all with all at the start (connect.cpp), or with the first message
// (on_demand.cpp).
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/via/listener.hpp"
#include "mpi-adi/transport/via/request_page.hpp"

namespace viaduct::via {

class Lane;
class Nic;

// A connection that is being made (on_demand.cpp).
constexpr VIP_ULONG kFirstRequest = 300;  // ms
struct ConnectAttempt {
    using Clock = std::chrono::steady_clock;
    Lane* connection;
    bool known = false;                 // the peer has seen the attempt: it has requested, or was notified
    bool requested = false;             // a request of ours is pending
    bool joined = false;                // VIPL has connected it; the peer's hello has not arrived yet
    bool hello_sent = false;
    VIP_ULONG timeout = kFirstRequest;  // of the next request, ms
    Clock::time_point next = {};        // nothing is tried before
    Clock::time_point next_check = {};  // when the peer's process is checked again
    Clock::time_point no_listener_since = {};  // 0: the last notice met a listener
    Clock::time_point failing_since = {};      // 0: the last request did not fail
    std::chrono::milliseconds pause{10};       // after a notice that met no listener
};

struct Connects {
    bool on_demand = false;  // connections are made with the first message
    bool mutual = false;     // by requests of both sides, without a notice: no listener runs
    std::vector<ConnectAttempt> attempts;
    ConnectAttempt::Clock::time_point all_joined = {};  // until then a peer may not have called pt_addconns yet
    ConnectListener listener;
    RequestPage page;
    size_t next = 0;              // the attempt that the next pass looks at first
    unsigned nap = kShortestNap;  // ms that a process sleeps at a time while it connects

    // A sleeping process is not woken by what happens to an attempt. So it sleeps briefly after each step of an
    // attempt, and longer and longer as long as none takes place: many processes that wait for each other at the start
    // of a job would take the processors from each other.
    static constexpr unsigned kShortestNap = 1, kLongestNap = 8;
    unsigned next_nap() {
        const unsigned now = nap;
        nap = std::min(2 * nap, kLongestNap);
        return now;
    }
    void note_step() { nap = kShortestNap; }
};

// Connects all lanes, within the time limit.
[[nodiscard]] int connect_all(Nic& nic);

// Whether jobs as large as this connect on demand.
bool wants_on_demand(const taskinfo_t* task);
// Begins an attempt to connect the lane; progress continues it.
void request_connection(Lane* c);
// Gives the attempt up.
void drop_attempt(Lane* c);
// Begins attempts for the peers that have noted a request here, in the page or with the listener.
void take_requests(Nic& nic);
// Steps of the attempts: of a few that do not move on, and of all that do. True: one has moved on.
bool advance_attempts(Nic& nic);
// The peer's hello has arrived: the attempt is complete.
void finish_attempt(Lane* c);

}  // namespace viaduct::via
