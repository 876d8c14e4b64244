// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/mode.hpp"

namespace viaduct::acenic {

bool read_mode(const Settings& settings, ModeChoice* out, std::string* why, std::string* cure) {
    out->engine = settings.get("engine", "");
    const std::string mode = settings.get("mode", "auto");
    if (mode == "auto") {
        out->mode = Mode::automatic;
    } else if (mode == "shared") {
        out->mode = Mode::shared;
    } else if (mode == "exclusive") {
        out->mode = Mode::exclusive;
    } else {
        *why = "acenic.mode is \"" + mode + "\"";
        *cure = "write auto, shared or exclusive";
        return false;
    }
    return true;
}

}  // namespace viaduct::acenic
