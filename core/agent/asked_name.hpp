// SPDX-License-Identifier: BSD-2-Clause
// The name of a NIC in a request to the agent (kResolveName, kOpenNic): the name that the program gave, and the
// provider that a name without a provider means in that program. Any thread.
#pragma once

#include <string_view>

#include "viaduct/kagent.hpp"

namespace viaduct {

// `name`, at most 255 characters, a zero byte, and `default_provider`. Where the provider does not fit, the agent takes
// its own.
kagent::NameText asked_name(std::string_view name, std::string_view default_provider);

// The second text of such a field; empty: there is none, as in messages of older programs.
std::string_view asked_provider(const char (&field)[sizeof(kagent::NameText::name)]);

}  // namespace viaduct
