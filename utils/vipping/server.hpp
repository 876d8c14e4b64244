// SPDX-License-Identifier: BSD-2-Clause
// vipping --server, for several clients at once.
#pragma once

#include <functional>
#include <string>

#include "utils/messages/ping.hpp"

namespace viaduct::vipping {

// Answers until stopped. `on_line` gets a line for people now and then.
void serve(const messages::Options&, const std::function<void(const std::string&)>& on_line);

}  // namespace viaduct::vipping
