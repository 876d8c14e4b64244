// SPDX-License-Identifier: BSD-2-Clause
#include "core/agent/asked_name.hpp"

#include <cstring>

namespace viaduct {

kagent::NameText asked_name(std::string_view name, std::string_view default_provider) {
    kagent::NameText text;
    const size_t room = sizeof text.name - 1;
    const size_t second = name.copy(text.name, room) + 1;
    if (second + default_provider.size() <= room) default_provider.copy(text.name + second, room - second);
    return text;
}

std::string_view asked_provider(const char (&field)[sizeof(kagent::NameText::name)]) {
    const size_t second = ::strnlen(field, sizeof field - 1) + 1;
    return {field + second, ::strnlen(field + second, sizeof field - second)};
}

}  // namespace viaduct
