// SPDX-License-Identifier: BSD-2-Clause
// What the process has once: configuration, the link to the kernel agent, object pools, the list of open
// NICs. Made by the first VipOpenNic and never destroyed, so that nothing of ours can die before a program's
// last call at exit.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/agent/link.hpp"
#include "core/config/config.hpp"
#include "core/handles/handle_table.hpp"
#include "vipl/policy.hpp"
#include "vipl/pool.hpp"

namespace viaduct::vipl {

struct Nic;
struct Vi;
struct Cq;
struct Ptag;
struct Connection;
class EventThread;

// In vipl/stats.cpp.
void* vi_records(uint32_t bytes, uint32_t* count);

// All handles of the process. Lies outside of Library, because generations must go on in a forked child.
[[gnu::visibility("hidden")]] extern HandleTable handle_table;

class Library {
public:
    // The one of this process; made on first use, nullptr when memory or the kernel refuse.
    static Library* start();

    Config config;
    Policy policy;
    int64_t spin_ns = 0;  // a waiting call polls for so long before it sleeps
    AgentLink link;
    std::unique_ptr<EventThread> events;
    std::atomic<uint32_t> peer_requests{0};  // attempts of VipConnectPeerRequest whose result was not fetched
    std::atomic<uint32_t> renewal{0};        // vipl/renewal.cpp

    Pool<Nic> nics;
    Pool<Vi> vis;  // where vipstat sees them
    std::once_flag vis_described;
    Pool<Cq> cqs;
    Pool<Ptag> ptags;
    Pool<Connection> connections;

    // NICs known to the agent, for re-attaching after its death. The agent's calls happen without this lock.
    void add_open(Nic* nic);
    void remove_open(Nic* nic);
    // Polls every open NIC of the process once: both ends of a connection may be ours, under two handles, and
    // the waiting thread is the only one there is. Does nothing while another thread does it.
    void poll_open();
    template <class F>
    void for_each_open(F&& visit) {
        const std::lock_guard lock(open_mutex_);
        for (Nic* nic : open_) visit(*nic);
    }

private:
    Library();
    bool prepare();

    std::mutex open_mutex_;
    std::vector<Nic*> open_;
};

}  // namespace viaduct::vipl
