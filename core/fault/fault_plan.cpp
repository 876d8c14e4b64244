// SPDX-License-Identifier: BSD-2-Clause
#include "core/fault/fault_plan.hpp"

#include <charconv>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace viaduct {

namespace {

template <class T>
bool read_number(std::string_view text, T* out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return error == std::errc() && end == text.data() + text.size();
}

// The point is one in every locale of the program. (libc++ has no from_chars for such numbers.)
bool read_probability(std::string_view text, double* out) {
    std::istringstream in{std::string(text)};
    in.exceptions(std::ios::badbit);  // a failed allocation throws; the text is not at fault
    in.imbue(std::locale::classic());
    in >> std::noskipws >> *out;
    return !in.fail() && in.peek() == std::istringstream::traits_type::eof() && *out >= 0 && *out <= 1;
}

bool read_item(std::string_view key, std::string_view value, FaultPlan* plan) {
    if (key == "seed") return read_number(value, &plan->seed);
    if (key == "drop") return read_probability(value, &plan->drop);
    if (key == "corrupt") return read_probability(value, &plan->corrupt);
    if (key == "duplicate") return read_probability(value, &plan->duplicate);
    if (key == "reorder") return read_probability(value, &plan->reorder);
    if (key == "delay_us") return read_number(value, &plan->delay_us) && plan->delay_us <= 10'000'000;
    if (key == "flap_ms") return read_number(value, &plan->flap_ms) && plan->flap_ms <= 3'600'000;
    if (key == "linkdown") {
        uint32_t down = 0;
        if (!read_number(value, &down) || down > 1) return false;
        plan->link_down = down == 1;
        return true;
    }
    return false;
}

}  // namespace

bool parse_fault_plan(const char* text, FaultPlan* out) {
    *out = FaultPlan();
    std::string_view rest = text == nullptr ? std::string_view() : std::string_view(text);
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        const size_t equals = item.find('=');
        if (equals == std::string_view::npos ||
            !read_item(item.substr(0, equals), item.substr(equals + 1), out))
            return false;
    }
    return true;
}

}  // namespace viaduct
