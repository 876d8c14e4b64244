// SPDX-License-Identifier: BSD-2-Clause
// Taking an address to listen at. Called by main, once.
#pragma once

#include <string>

#include "core/shm/segment.hpp"
#include "viaduct/types.hpp"

namespace viaduct::kagent {

// Binds and listens. not_done: somebody listens there already. With `error` for people.
Status listen_at(const std::string& address, Fd* out, std::string* error);

}  // namespace viaduct::kagent
