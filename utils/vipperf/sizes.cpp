// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/sizes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "utils/vipperf/plan.hpp"

namespace viaduct::vipperf {

namespace {

// 0: not a size.
uint64_t one_size(const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || value > kMostBytes) return 0;
    uint64_t unit = 1;
    if (rest != end) {
        const auto letter = std::toupper(static_cast<unsigned char>(*rest));
        unit = rest + 1 != end ? 0 : letter == 'K' ? 1024 : letter == 'M' ? 1024 * 1024 : 0;
    }
    return value * unit <= kMostBytes ? value * unit : 0;
}

}  // namespace

std::vector<uint64_t> sizes_of(const std::string& text) {
    std::vector<uint64_t> sizes;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t colon = part.find(':');
        const uint64_t first = one_size(part.substr(0, colon));
        const uint64_t last = colon == std::string::npos ? first : one_size(part.substr(colon + 1));
        if (first == 0 || last < first) return {};
        for (uint64_t size = first; size <= last; size *= 2) sizes.push_back(size);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

std::string size_text(uint64_t bytes) {
    if (bytes >= 1024 * 1024 && bytes % (1024 * 1024) == 0) return std::to_string(bytes >> 20) + " MiB";
    if (bytes >= 1024 && bytes % 1024 == 0) return std::to_string(bytes >> 10) + " KiB";
    return std::to_string(bytes) + " B";
}

}  // namespace viaduct::vipperf
