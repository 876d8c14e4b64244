// SPDX-License-Identifier: BSD-2-Clause
// A port belongs to one process: an application in exclusive mode, or the engine process of shared mode.
#pragma once

#include "core/shm/segment.hpp"
#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {

// What the port is called where a short name is needed: its network interface, else a number made of its
// text.
std::string short_name(const PortSpec&);

// The lock: held while this process has the port, invalid when another process has it. A name in the abstract
// space of this network namespace, where the port is too.
Fd acquire_port_lock(const PortSpec&);

}  // namespace viaduct::acenic
