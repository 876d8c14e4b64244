// SPDX-License-Identifier: BSD-2-Clause
// Numbers by which processes find out that they share a machine and a name space of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::adi {

constexpr uint64_t kHashSeed = 0xcbf29ce484222325;
uint64_t hash(uint64_t seed, const void* data, size_t bytes);

// Equal for processes of one running system that share the name space ("net", "pid").
uint64_t host_number(const char* name_space);

}  // namespace viaduct::adi
