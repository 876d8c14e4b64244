// SPDX-License-Identifier: BSD-2-Clause
// Memory that the library maps for itself: segments, tables, stacks of its threads. A program may unmap memory that it
// has registered and not say so, and its peers still write there; the next mapping of the process often gets that very
// place. None of the library's may: all of them are made here, and lie where no registered region is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace viaduct {

// As mmap() at a place of the system's choice. Null, with errno, when there is none.
void* map_own(size_t bytes, int protection, int flags, int fd = -1, off_t at = 0);

// The table of what is registered: whether any of those bytes are. Any thread may ask at any time.
using AnyRegistered = bool (*)(uintptr_t begin, size_t bytes);
void keep_out_of(AnyRegistered);

}  // namespace viaduct
