// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "core/config/config.hpp"

namespace viaduct {

namespace {

struct Unit {
    std::string_view suffix;
    int64_t factor;
};

constexpr Unit kSizeUnits[] = {
    {"", 1},          {"B", 1},       {"K", 1 << 10},   {"KiB", 1 << 10},        {"M", 1 << 20},
    {"MiB", 1 << 20}, {"G", 1 << 30}, {"GiB", 1 << 30}, {"T", int64_t{1} << 40}, {"TiB", int64_t{1} << 40},
};
constexpr Unit kDurationUnits[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60'000}};

// The number that a text begins with, and what follows it.
struct Beginning {
    int64_t number;
    std::string_view rest;
};

std::optional<Beginning> decimal(std::string_view text) {
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{}) return std::nullopt;
    return Beginning{number, text.substr(static_cast<size_t>(end - text.data()))};
}

// As strtol(3) reads them: 0x1F, 017, white space and a sign before.
std::optional<Beginning> as_c(std::string_view text) {
    const std::string copy(text);
    char* end = nullptr;
    errno = 0;
    const long long number = std::strtoll(copy.c_str(), &end, 0);
    if (end == copy.c_str() || errno == ERANGE) return std::nullopt;
    return Beginning{number, text.substr(static_cast<size_t>(end - copy.c_str()))};
}

std::optional<int64_t> alone(std::optional<Beginning> read) {
    return read && read->rest.empty() ? std::optional(read->number) : std::nullopt;
}

template <size_t N>
std::optional<int64_t> with_unit(std::optional<Beginning> read, const Unit (&units)[N]) {
    if (!read || read->number < 0) return std::nullopt;
    const auto [number, suffix] = *read;
    for (const Unit& unit : units) {
        if (suffix != unit.suffix) continue;
        if (number > std::numeric_limits<int64_t>::max() / unit.factor) return std::nullopt;
        return number * unit.factor;
    }
    return std::nullopt;
}

bool among(std::string_view choices, std::string_view text) {
    while (true) {
        const size_t bar = choices.find('|');
        if (choices.substr(0, bar) == text) return true;
        if (bar == std::string_view::npos) return false;
        choices.remove_prefix(bar + 1);
    }
}

// Edits (insert, delete, replace, swap of neighbours) between two words.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
        before_last.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace

std::optional<int64_t> parse_number(std::string_view type, std::string_view text) {
    if (type == "size" || type == "auto_or_size") return with_unit(decimal(text), kSizeUnits);
    if (type == "c_size") return with_unit(as_c(text), kSizeUnits);
    if (type == "c_int") return alone(as_c(text));
    if (type == "duration_ms") return with_unit(decimal(text), kDurationUnits);
    if (type == "bool") {
        if (among("true|yes|on|1", text)) return 1;
        if (among("false|no|off|0", text)) return 0;
        return std::nullopt;
    }
    return alone(decimal(text));
}

std::string wrong_value(const ConfigKey& row, std::string_view text) {
    const std::string_view type = row.type;
    if (type == "string") return "";
    if (type == "auto_or_size" && text == "auto") return "";
    if (!among("int|bool|size|auto_or_size|duration_ms|c_int|c_size", type)) {
        if (among(type, text)) return "";
        return type.starts_with('|') ? fmt::format("one of {}, or empty", type.substr(1))
                                     : fmt::format("one of {}", type);
    }
    const std::optional<int64_t> number = parse_number(type, text);
    if (number && (!row.has_range() || (*number >= row.low && *number <= row.high))) return "";
    if (type == "bool") return "true or false";
    const std::string range = row.has_range() ? fmt::format(" from {} to {}", row.low, row.high) : "";
    if (type == "duration_ms") return fmt::format("a number of milliseconds{}, or with s or min", range);
    if (type == "int" || type == "c_int") return "a whole number" + range;
    return fmt::format("a number of bytes{}, K, M, G or T may follow", range);
}

std::string nearest(std::string_view misspelt, const std::vector<std::string>& candidates) {
    std::string best;
    size_t best_distance = std::max<size_t>(2, misspelt.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const size_t d = distance(misspelt, candidate);
        if (d < best_distance) {
            best_distance = d;
            best = candidate;
        }
    }
    return best;
}

}  // namespace viaduct
