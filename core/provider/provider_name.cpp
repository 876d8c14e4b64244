// SPDX-License-Identifier: BSD-2-Clause
#include "core/provider/provider_name.hpp"

#include <algorithm>

namespace viaduct {

std::string_view provider_named_by(std::string_view name, const std::vector<std::string>& providers) {
    constexpr std::string_view kFolder = "/dev/";
    const std::string_view path = name.starts_with(kFolder) ? name.substr(kFolder.size()) : name;
    const std::string_view head = path.substr(0, path.find_first_of("/:"));
    const std::string_view named = head.substr(0, head.find_last_not_of("0123456789") + 1);
    if (named.size() == head.size() && path.find(':') == path.npos) return {};
    return std::find(providers.begin(), providers.end(), named) != providers.end() ? named : std::string_view();
}

}  // namespace viaduct
