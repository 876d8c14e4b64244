// SPDX-License-Identifier: BSD-2-Clause
// Helper threads of the library: detached, because nothing may be joined at exit, and with every signal
// blocked, because signals belong to the program (spec/compat L3, L4, L9). Their stacks lie where the program has
// nothing registered (core/shm/own_mapping.hpp), and are given back when the next thread starts.
#pragma once

#include <cstddef>

#include "viaduct/types.hpp"

namespace viaduct::vipl {

inline constexpr size_t kSmallStack = 256 * 1024;  // for threads that run our code only
inline constexpr size_t kDefaultStack = 0;         // for threads that run the program's handlers

// ok, or out_of_resources with errno set.
Status start_thread(const char* name, size_t stack_bytes, void (*run)(void*), void* argument);

// In a forked child, which has none of these threads.
void clear_threads();

}  // namespace viaduct::vipl
