// SPDX-License-Identifier: BSD-2-Clause
// Who owns the port: the application itself, or an engine process that several share.
#pragma once

#include <string>

#include "viaduct/provider.hpp"

namespace viaduct::acenic {

enum class Mode {
    automatic,  // shared where an engine process runs or can be started, else exclusive
    shared,
    exclusive,
};

struct ModeChoice {
    Mode mode = Mode::automatic;
    std::string engine;  // where the engine process listens; empty: at the address the port gives it
};

// acenic.mode and acenic.engine. False: *why and *cure say what is wrong with them.
bool read_mode(const Settings&, ModeChoice*, std::string* why, std::string* cure);

}  // namespace viaduct::acenic
