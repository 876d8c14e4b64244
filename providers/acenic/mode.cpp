// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/mode.hpp"

#include "providers/packet/key_file.hpp"

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
    const std::string file = settings.get("auth_key_file", "");
    if (file.empty()) return true;
    if (out->mode == Mode::shared) {
        *why = "acenic.auth_key_file is set, and acenic.mode is shared";
        *cure = "frames are authenticated in exclusive mode only: set acenic.mode to exclusive or auto";
        return false;
    }
    out->mode = Mode::exclusive;
    out->key.emplace();
    return packet::read_key_file("acenic", file, &*out->key, why, cure);
}

}  // namespace viaduct::acenic
