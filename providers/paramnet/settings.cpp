// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/settings.hpp"

#include <cstdio>
#include <cstring>

namespace viaduct::paramnet {

namespace {

bool is(const char* text, const char* wanted) { return std::strcmp(text, wanted) == 0; }

bool refuse(Rejection* why, const char* reason, const char* value, const char* cure) {
    std::snprintf(why->name, sizeof why->name, "paramnet");
    std::snprintf(why->reason, sizeof why->reason, reason, value);
    std::snprintf(why->cure, sizeof why->cure, "%s", cure);
    return false;
}

}  // namespace

bool read_settings(const Settings& settings, NicSettings* out, Rejection* why) {
    const int64_t nics = settings.get_int("nics", 1);
    if (nics < 0 || nics > kMaxNics)
        return refuse(why, "paramnet.nics = %s is not a number of NICs", settings.get("nics", ""),
                      "set paramnet.nics to a number from 0 to 64");
    out->nics = static_cast<uint32_t>(nics);

    const char* cross = settings.get("cross_copy", "auto");
    if (is(cross, "off") || is(cross, "false") || is(cross, "0")) {
        out->cross_copy = false;
    } else if (!is(cross, "auto") && !is(cross, "on") && !is(cross, "true") && !is(cross, "1") &&
               !is(cross, "")) {
        return refuse(why, "paramnet.cross_copy = %s is unknown", cross,
                      "set paramnet.cross_copy to auto or off");
    }

    const char* pull = settings.get("pull_from", "auto");
    out->pull_from = is(pull, "auto") || is(pull, "") ? -1 : settings.get_int("pull_from", -1);

    const char* stream = settings.get("stream_from", "auto");
    if (!is(stream, "auto") && !is(stream, "")) {
        const int64_t from = settings.get_int("stream_from", 0);
        out->stream_from = from > 0 && from < UINT32_MAX ? static_cast<uint32_t>(from) : UINT32_MAX;
    }

    const char* timing = settings.get("timing", "none");
    if (!is(timing, "none") && !is(timing, ""))
        return refuse(why, "paramnet.timing = %s is not built into this version", timing,
                      "remove paramnet.timing or set it to none");
    out->timing = Timing::none;
    return true;
}

}  // namespace viaduct::paramnet
