// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/settings.hpp"

#include <cstdio>
#include <string_view>

namespace viaduct::verbs {

namespace {

struct Number {
    const char* key;
    int64_t fallback, lowest, highest;
};

constexpr Number kPort = {"port", 20480, 1024, 61000};
constexpr Number kDepth = {"depth", 1024, 16, 16384};
constexpr Number kSegments = {"segments", 16, 2, 252};
constexpr Number kInline = {"inline", 128, 0, 1024};
constexpr Number kWindow = {"send_window", 128, 8, 16384};
constexpr Number kTimeout = {"ack_timeout", 14, 1, 31};
constexpr Number kKeepalive = {"keepalive_ms", 2000, 0, 3'600'000};
// Not 7, which soft-RoCE takes for "without end": a peer that has ended without a message would never be noticed.
constexpr Number kRetries = {"retries", 6, 0, 7};

template <class T>
bool read_number(const Settings& settings, const Number& n, T* out, Rejection* why) {
    const int64_t value = settings.get_int(n.key, n.fallback);
    if (value >= n.lowest && value <= n.highest) {
        *out = static_cast<T>(value);
        return true;
    }
    std::snprintf(why->name, sizeof why->name, "verbs");
    std::snprintf(why->reason, sizeof why->reason, "verbs.%s = %lld is out of range", n.key,
                  static_cast<long long>(value));
    std::snprintf(why->cure, sizeof why->cure, "set verbs.%s to a number from %lld to %lld", n.key,
                  static_cast<long long>(n.lowest), static_cast<long long>(n.highest));
    return false;
}

}  // namespace

bool read_settings(const Settings& settings, NicSettings* out, Rejection* why) {
    out->devices = settings.get("devices", "");
    return read_number(settings, kPort, &out->base_port, why) &&
           read_number(settings, kDepth, &out->depth, why) &&
           read_number(settings, kSegments, &out->segments, why) &&
           read_number(settings, kInline, &out->inline_bytes, why) &&
           read_number(settings, kWindow, &out->send_window, why) &&
           read_number(settings, kTimeout, &out->ack_timeout, why) &&
           read_number(settings, kKeepalive, &out->keepalive_ms, why) &&
           read_number(settings, kRetries, &out->retries, why);
}

bool wants_device(const NicSettings& settings, const char* name) {
    std::string_view rest = settings.devices;
    if (rest.empty()) return true;
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        std::string_view one = rest.substr(0, comma);
        while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
        while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
        if (one == name) return true;
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return false;
}

}  // namespace viaduct::verbs
