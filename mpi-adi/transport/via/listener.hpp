// SPDX-License-Identifier: BSD-2-Clause
// The connect listener of a process whose connections are made with the first message (spec/adi 3.3). VIA has no call
// that checks for requests without blocking, so a thread waits for them. It notes the rank that has asked and rejects
// the request: the connection itself is made by progress of both sides, as equals. So two that ask at once need no
// order, and only the list of ranks is shared with the thread. It answers while the process computes; a dead process
// does not answer.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::via {

class Nic;
struct Card;

enum class Notice {
    noted,
    no_listener,  // not yet, or the process is dead
    no_answer,    // its thread does not run now and notes it when it does: the process is stopped, say
    failed,       // the call of VIPL failed
};

class ConnectListener {
public:
    // Listens on the open NIC; called again when processes have joined. MPIP_SUCCESS, or MPIP_ERR_NO_MEM when no thread
    // is to be had.
    [[nodiscard]] int start(Nic& nic, const taskinfo_t* task);
    // stop() before the NIC is closed, join() after: the thread ends. Without a listener they do nothing.
    void stop(Nic& nic);
    void join();
    // World ranks that have asked since the last call, each once. Called by progress.
    std::vector<uint32_t> take();
    // Notifies a peer's listener and waits for the answer, kNoticeMilliseconds at most. Called by progress.
    static constexpr unsigned kNoticeMilliseconds = 200;
    Notice notify(Nic& nic, const Card& card, uint32_t rank, VIP_RETURN* why);

private:
    struct Shared;  // with the thread
    static void listen(Shared* shared);
    static void note(Shared& shared, const VIP_NET_ADDRESS* from);
    VIP_RETURN call(Nic& nic, const unsigned char* host, size_t host_len, uint32_t rank);

    Shared* shared_ = nullptr;    // not destroyed at exit: the thread may still run
    VIP_VI_HANDLE vi_ = nullptr;  // for requests to other listeners
};

}  // namespace viaduct::via
