// SPDX-License-Identifier: BSD-2-Clause
// The connect listener of a process whose connections are made when they are wanted (spec/adi 3.3). VIA has no call
// that asks without blocking whether anybody wants to connect, so a thread waits for such requests. It notes who has
// asked and turns the request away: the connection itself is made by both sides' progress, as between equals, so
// that two who ask at once need no rule who goes first, and nothing but the list of who asked is shared with the
// thread. It answers while the process computes, and does not once the process is dead.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::via {

class Nic;
struct Card;

enum class Notice {
    heard,
    nobody,   // nobody listens there: not yet, or the process is dead
    unheard,  // somebody does, and its thread does not run, but will hear when it does: the process is stopped, say
    failed,   // VIPL has not asked
};

class ConnectListener {
public:
    // Listens on the open NIC; again, after processes have joined. MPIP_SUCCESS, or MPIP_ERR_NO_MEM when no thread
    // is to be had.
    [[nodiscard]] int start(Nic& nic, const taskinfo_t* task);
    // Before the NIC is closed, and after: the thread ends. Nothing happens where nobody listens.
    void stop(Nic& nic);
    void join();
    // World ranks of those who have asked since the last call, each once. From progress.
    std::vector<uint32_t> take();
    // Asks at a peer's listener and waits for the answer, kNoticeMilliseconds at most. From progress.
    static constexpr unsigned kNoticeMilliseconds = 200;
    Notice notify(Nic& nic, const Card& card, uint32_t rank, VIP_RETURN* why);

private:
    struct Shared;  // with the thread
    static void listen(Shared* shared);
    static void note(Shared& shared, const VIP_NET_ADDRESS* from);
    VIP_RETURN call(Nic& nic, const unsigned char* host, size_t host_len, uint32_t rank);

    Shared* shared_ = nullptr;  // a process may end while it listens: this stays
    VIP_VI_HANDLE vi_ = nullptr;  // its requests go out by this
};

}  // namespace viaduct::via
