// SPDX-License-Identifier: BSD-2-Clause
// Finding the engine process of a port, starting it if need be, and attaching to it. Slow path, no lock held.
#pragma once

#include <string>

#include "core/shm/segment.hpp"
#include "providers/acenic/daemon/protocol.hpp"
#include "providers/acenic/mode.hpp"
#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {

struct EngineLink {
    Fd socket;
    Fd liveness_pipe;  // readable when the engine process has ended
    Welcome welcome;
    int64_t deadline = 0;  // for finding it and attaching, together
};

// ok: the engine has welcomed us. not_supported: there is no engine and none can be started (*why). Else: *why and
// *cure say what the engine, or the system, refuses.
Status find_engine(const PortSpec&, const ModeChoice&, EngineLink*, std::string* why, std::string* cure);

// Hands over the segment with the rings.
Status attach(const EngineLink&, const Segment&, std::string* why);

}  // namespace viaduct::acenic
