// SPDX-License-Identifier: BSD-2-Clause
// One application at the engine process: its socket, its life, its segment with the rings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/acenic/daemon/receive_fifo.hpp"
#include "providers/acenic/tigon/firmware.hpp"

namespace viaduct::acenic {

struct Session {
    enum class Stage { greeting, attaching, running };

    explicit Session(CardMemory& memory) : fifo(memory) {}

    Stage stage = Stage::greeting;
    uint64_t number = 0;  // counts the connections
    uint32_t slot = 0;
    Fd socket;
    Fd process;   // pidfd: a forked child may hold the socket open; invalid where pids cannot be seen
    Fd liveness_pipe;  // our end of the pipe whose closing tells the application that the engine has ended
    uid_t user = 0;
    pid_t pid = 0;
    int64_t since = 0;
    Segment segment;
    tigon::Firmware firmware;      // when running
    ReceiveFifo fifo;              // in front of it
    std::vector<uint32_t> faulty;  // links with a fault plan
    uint32_t sends = 0;            // that it may make in a round
    int64_t stalled_since = 0;     // its next frame waits for room at another host; 0: it does not
    bool up = false;               // the host has said so
    bool over = false;             // to be closed at the end of this round
};

}  // namespace viaduct::acenic
