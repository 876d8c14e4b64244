// SPDX-License-Identifier: BSD-2-Clause
// The bell of a process whose connections are made when they are wanted (spec/adi 3.3). VIA has no call that
// asks without blocking whether anybody wants to connect, so a thread waits for such requests. It notes who has
// rung and turns the request away: the connection itself is made by both sides' progress, as between equals, so
// that two who ring at once need no rule who goes first, and nothing but the list of who rang is shared with the
// thread. The bell is answered while the process computes, and by nobody once it is dead.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::via {

class Lane;

// Hangs out the bell of this process, on the open NIC; again, after processes have joined. MPIP_SUCCESS, or
// MPIP_ERR_NO_MEM when no thread is to be had.
int hang_out_bell(const taskinfo_t* task);
// Before the NIC is closed, and after: the thread ends. Nothing happens where no bell hangs.
void silence_bell();
void take_down_bell();
// World ranks of those who have rung since the last call, each once. From progress.
std::vector<uint32_t> who_rang();

enum class Ring {
    heard,
    nobody,   // no bell hangs there: not yet, or the process is dead
    unheard,  // there is one, and its thread does not run, but will hear when it does: the process is stopped, say
    failed,   // VIPL has not rung
};
// Rings at the peer's and waits for the answer, kRingMilliseconds at most. From progress.
constexpr unsigned kRingMilliseconds = 200;
Ring ring(const Lane* c, VIP_RETURN* why);

}  // namespace viaduct::via
