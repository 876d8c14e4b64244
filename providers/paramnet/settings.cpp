// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/settings.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

namespace {

bool is(const char* text, const char* wanted) { return std::strcmp(text, wanted) == 0; }

bool refuse(Rejection* why, const char* reason, const char* value, const char* cure) {
    std::snprintf(why->name, sizeof why->name, "paramnet");
    std::snprintf(why->reason, sizeof why->reason, reason, value);
    std::snprintf(why->cure, sizeof why->cure, "%s", cure);
    return false;
}

// Item number `index` of a list with `separator` between; the last one counts for all NICs behind it.
std::string_view item_of(std::string_view list, char separator, uint32_t index, bool last_goes_on) {
    for (;; --index) {
        const size_t end = list.find(separator);
        if (index == 0 || (last_goes_on && end == std::string_view::npos)) return list.substr(0, end);
        if (end == std::string_view::npos) return {};
        list.remove_prefix(end + 1);
    }
}

// Bytes, with K, M, G or T behind them.
bool read_bytes(std::string_view text, uint64_t* out) {
    *out = 0;
    if (text.empty()) return true;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    if (error != std::errc()) return false;
    const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
    if (unit.empty()) return true;
    const size_t power = std::string_view("KMGT").find(unit[0]);
    if (unit.size() != 1 || power == std::string_view::npos || *out >> (63 - 10 * (power + 1)) != 0)
        return false;
    *out <<= 10 * (power + 1);
    return true;
}

bool read_timing(const Settings& settings, NicSettings* out, Rejection* why) {
    const int64_t switches = settings.get_int("switches", 1);
    if (switches < 0 || switches > kMaxSwitches)
        return refuse(why, "paramnet.switches = %s is no number of switches", settings.get("switches", ""),
                      "set paramnet.switches to a number from 0 to 16");
    const char* timing = settings.get("timing", "none");
    if (is(timing, "paramnet2"))
        out->link = paramnet2(static_cast<uint32_t>(switches));
    else if (!is(timing, "none") && !is(timing, ""))
        return refuse(why, "paramnet.timing = %s is unknown", timing,
                      "set paramnet.timing to none or paramnet2");
    return true;
}

bool read_link(const Settings& settings, uint32_t index, NicSettings* out, Rejection* why) {
    if (!read_timing(settings, out, why)) return false;
    const char* rates = settings.get("link_rate", "");
    uint64_t rate = 0;
    if (!read_bytes(item_of(rates, ';', index, true), &rate))
        return refuse(why, "paramnet.link_rate = %s is not a list of bytes a second", rates,
                      "write paramnet.link_rate as \"200M\" or \"200M;100M\"");
    if (rate != 0) out->link.rate = rate;
    const char* plans = settings.get("faults", "");
    const std::string plan(item_of(plans, ';', index, false));
    if (!parse_fault_plan(plan.c_str(), &out->faults) || out->faults.reorder > 0)
        return refuse(why, "paramnet.faults = %s is not a list of fault plans", plans,
                      "write paramnet.faults as \"drop=0.01;flap_ms=100\", see viaduct(7)");
    return true;
}

}  // namespace

bool read_settings(const Settings& settings, uint32_t index, NicSettings* out, Rejection* why) {
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

    const char* trials = settings.get("trials", "on");
    if (!is(trials, "on") && !is(trials, "off") && !is(trials, ""))
        return refuse(why, "paramnet.trials = %s is unknown", trials, "set paramnet.trials to on or off");
    out->trials = !is(trials, "off");

    const char* pull = settings.get("pull_from", "auto");
    out->pull_from = is(pull, "auto") || is(pull, "") ? -1 : settings.get_int("pull_from", -1);

    const char* stream = settings.get("stream_from", "auto");
    if (!is(stream, "auto") && !is(stream, "")) {
        const int64_t from = settings.get_int("stream_from", 0);
        out->stream_from = from > 0 && from < UINT32_MAX ? static_cast<uint32_t>(from) : UINT32_MAX;
    }

    const char* block = settings.get("block_bytes", "auto");
    if (!is(block, "auto") && !is(block, "")) {
        const int64_t bytes = settings.get_int("block_bytes", 0);
        if (bytes < kMinFragment || bytes > kMaxFragment || bytes % kUnitBytes != 0)
            return refuse(why, "paramnet.block_bytes = %s is no size of blocks", block,
                          "set paramnet.block_bytes to auto or a multiple of 64 from 4K to 64K");
        out->block_bytes = static_cast<uint32_t>(bytes);
    }

    return read_link(settings, index, out, why);
}

}  // namespace viaduct::paramnet
