// SPDX-License-Identifier: BSD-2-Clause
// One application at the engine process: its socket, its life, its segment with the rings.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/daemon/admission.hpp"
#include "core/shm/segment.hpp"
#include "providers/acenic/daemon/receive_fifo.hpp"
#include "providers/acenic/tigon/firmware.hpp"

namespace viaduct::acenic {

struct Session : daemon::Program {
    enum class Stage { greeting, attaching, running };

    Session(daemon::Program&& p, CardMemory& memory) : Program(std::move(p)), fifo(memory) {}

    Stage stage = Stage::greeting;
    uint32_t slot = 0;
    Fd liveness_pipe;  // our end of the pipe whose closing tells the application that the engine has ended
    Segment segment;
    tigon::Firmware firmware;      // when running
    ReceiveFifo fifo;              // in front of it
    std::vector<uint32_t> faulty;  // links with a fault plan
    uint32_t sends = 0;            // that it may make in a round
    int64_t stalled_since = 0;     // its next frame waits for room at another host; 0: it does not
    bool up = false;               // the host has said so
    bool refused = false;          // its hello was; it may still have the engine process replaced
    bool over = false;             // to be closed at the end of this round
};

}  // namespace viaduct::acenic
