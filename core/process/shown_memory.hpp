// SPDX-License-Identifier: BSD-2-Clause
// Memory that a process shows to tools: a memory file of a known name among its descriptors, found by /proc. Slow path,
// any thread; no state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/shm/fd.hpp"

namespace viaduct {

enum class Shown { found, no_memory, no_process, no_permission };

// Opens the first memory file of that name of that process for which `is_it` is true. Each process may give a file any
// name, and a forked child has its parent's: `is_it` reads whose it is.
Shown find_shown_memory(pid_t pid, const char* name, const std::function<bool(const Fd&)>& is_it, Fd* out);

// What getpid() says in that process: in a PID namespace below ours it has another number.
uint32_t own_number_of(pid_t pid);

// All processes that this one sees, in the order of their numbers.
std::vector<pid_t> all_processes();

}  // namespace viaduct
