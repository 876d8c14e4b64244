// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

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

template <size_t N>
std::optional<int64_t> with_unit(std::string_view text, const Unit (&units)[N]) {
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || number < 0) return std::nullopt;
    const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
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
    if (type == "size" || type == "auto_or_size") return with_unit(text, kSizeUnits);
    if (type == "duration_ms") return with_unit(text, kDurationUnits);
    if (type == "bool") {
        if (among("true|yes|on|1", text)) return 1;
        if (among("false|no|off|0", text)) return 0;
        return std::nullopt;
    }
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::string wrong_value(std::string_view type, std::string_view text) {
    if (type == "string") return "";
    if (type == "auto_or_size" && text == "auto") return "";
    if (!among("int|bool|size|auto_or_size|duration_ms", type))
        return among(type, text) ? "" : fmt::format("one of {}", type);
    if (parse_number(type, text)) return "";
    if (type == "bool") return "true or false";
    if (type == "size" || type == "auto_or_size") return "a number of bytes, with K, M, G or T";
    if (type == "duration_ms") return "a number of milliseconds, or with s or min";
    return "a whole number";
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
