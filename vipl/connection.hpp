// SPDX-License-Identifier: BSD-2-Clause
// Connecting, client/server and peer to peer. The blocking calls wait in slices, so that VipDisconnect and
// VipCloseNic on another thread can end an attempt.
#pragma once

#include <vipl.h>

#include <atomic>

#include "viaduct/provider.hpp"
#include "vipl/nic.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {

// What VipConnectWait hands out: a request that waits for Accept or Reject.
struct Connection {
    std::atomic<uintptr_t> handle{0};
    Nic* nic = nullptr;
    uint64_t incoming = 0;
    ViTraits remote_traits;
    EndAddress local;  // that it was sent to
    EndAddress remote;
    bool taken = false;  // an Accept or Reject is under way; under Nic::mutex
};

VIP_RETURN connect_wait(Nic& nic, const VIP_NET_ADDRESS& local, Deadline deadline, VIP_NET_ADDRESS* remote,
                        VIP_VI_ATTRIBUTES* attributes, VIP_CONN_HANDLE* out);
VIP_RETURN connect_accept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi);
VIP_RETURN connect_reject(VIP_CONN_HANDLE connection);
VIP_RETURN connect_request(Vi& vi, VIP_VI_HANDLE handle, const VIP_NET_ADDRESS& local,
                           const VIP_NET_ADDRESS& remote, Deadline deadline, VIP_VI_ATTRIBUTES* attributes);
VIP_RETURN peer_request(Vi& vi, VIP_VI_HANDLE handle, const VIP_NET_ADDRESS& local,
                        const VIP_NET_ADDRESS& remote, Deadline deadline);
VIP_RETURN peer_result(Vi& vi, VIP_VI_HANDLE handle, bool wait, VIP_VI_ATTRIBUTES* attributes);

// Ends an attempt that is under way and returns when it is over. No VI lock may be held; the NIC is pinned. False: a
// signal handler of the thread that runs the attempt has called, and the attempt is over once that handler returns.
bool give_up_attempt(Vi& vi);
// At the end of a VI: a peer request whose result the program has not fetched.
void finish_left_attempt(Vi& vi);
// For VipCloseNic.
void kill_connections(Nic& nic);

}  // namespace viaduct::vipl
