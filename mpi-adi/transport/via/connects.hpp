// SPDX-License-Identifier: BSD-2-Clause
// How lanes of one NIC are connected: all with all at the start (connect.cpp), or when somebody first sends
// (on_demand.cpp).
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <chrono>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/via/listener.hpp"

namespace viaduct::via {

class Lane;
class Nic;

// A connection on its way (on_demand.cpp).
constexpr VIP_ULONG kFirstAttempt = 300;  // ms
struct Opening {
    using Clock = std::chrono::steady_clock;
    Lane* connection;
    bool known = false;                 // the peer knows that it is wanted: it has asked, or has heard us ask
    bool asked = false;                 // our request for it is pending
    bool joined = false;                // it is made; the peer has not said hello yet
    bool greeted = false;               // we have
    VIP_ULONG attempt = kFirstAttempt;  // how long it stays, ms
    Clock::time_point next = {};        // nothing is tried before
    Clock::time_point look = {};        // when it is looked again whether the peer lives
    Clock::time_point deaf_since = {};  // since when nobody listens there; 0: somebody does
    Clock::time_point failing_since = {};  // since when each request fails; 0: the last one did not
    std::chrono::milliseconds pause{10};   // after the next notice in vain
};

struct Connects {
    bool on_demand = false;  // connections are made when they are wanted
    bool mutual = false;     // ... by both sides without a word: nobody listens
    std::vector<Opening> openings;
    Opening::Clock::time_point all_joined = {};  // until then some may not have called pt_addconns yet
    ConnectListener listener;
};

// Everybody with everybody, each within its time limit.
[[nodiscard]] int connect_all(Nic& nic);

// Whether jobs as large as this connect on demand.
bool wants_on_demand(const taskinfo_t* task);
// Somebody wants to send; progress does the rest.
void want_connection(Lane* c);
// Nobody wants to any more.
void drop_opening(Lane* c);
// Those that the listener has noted.
void take_requests(Nic& nic);
// One step of each connection on its way; whether any is through, or given up.
bool advance_openings(Nic& nic);
// The peer has said hello.
void finish_opening(Lane* c);

}  // namespace viaduct::via
