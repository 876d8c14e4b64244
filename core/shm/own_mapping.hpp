// SPDX-License-Identifier: BSD-2-Clause
// Memory that the library maps for itself: segments, tables, stacks of its threads. A program may unmap registered
// memory without deregistering it. Its peers still write to that place, and the next mapping of the process often gets
// it. Memory of the library must never lie there: all of it is mapped here, at places that no registered region has.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace viaduct {

// As mmap() at a place of the system's choice. Null, with errno, when there is none.
void* map_own(size_t bytes, int protection, int flags, int fd = -1, off_t at = 0);

// Whether any of those bytes are registered (RegionTable). Any thread may call it at any time.
using AnyRegistered = bool (*)(uintptr_t begin, size_t bytes);
// From now on map_own() takes no place for which it gives true.
void set_registered_memory_check(AnyRegistered);

}  // namespace viaduct
