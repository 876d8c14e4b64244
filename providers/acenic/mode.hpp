// SPDX-License-Identifier: BSD-2-Clause
// Which process owns the port: the application itself, or an engine process that several share.
#pragma once

#include <optional>
#include <string>

#include "providers/wire/siphash.hpp"
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
    // Frames are tagged with it, and others are dropped. Exclusive mode: the engine process answers
    // for its hosts, and has no key.
    std::optional<wire::Key> key;
};

// acenic.mode, acenic.engine and acenic.auth_key_file. False: *why and *cure say what is wrong with them.
bool read_mode(const Settings&, ModeChoice*, std::string* why, std::string* cure);

}  // namespace viaduct::acenic
