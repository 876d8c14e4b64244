// SPDX-License-Identifier: BSD-2-Clause
// A long answer as a memory file that nothing can change any more.
#pragma once

#include <cstddef>
#include <span>

#include "core/shm/fd.hpp"

namespace viaduct::kagent {

// Invalid: no memory or no descriptor is left.
Fd sealed_file(const char* label, std::span<const std::span<const std::byte>> parts);

}  // namespace viaduct::kagent
