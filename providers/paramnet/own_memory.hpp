// SPDX-License-Identifier: BSD-2-Clause
// Copies between the library and registered memory of this process. The program may unmap or protect such memory, or
// shorten its file, without deregistering it. A fault would end the process inside a thread of the library. So each
// function first asks the kernel by a system call whether the range is accessible (core/memory/mapped.hpp). Another
// thread may still change the mapping during the copy. No lock is taken; callers hold the lock of the queue. Rule:
// docs/data-path.md, docs/faults.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "core/memory/mapped.hpp"

namespace viaduct::paramnet {

// False: not all of the range is accessible, and nothing was copied. Writes in ascending order (copy_rising()).
bool write_if_accessible(std::byte* to, const std::byte* from, size_t n);
bool read_if_accessible(std::byte* to, const std::byte* from, size_t n);
// As scatter() and gather(), but they end before the first piece that is not accessible. The result is the number of
// bytes copied.
uint32_t scatter_accessible(SegmentCursor&, const std::byte* from, uint32_t n);
uint32_t gather_accessible(SegmentCursor&, std::byte* to, uint32_t n);
// Whether the cursor has n more bytes and all of them are accessible. The caller's cursor does not move.
bool all_readable(SegmentCursor, uint32_t n);
bool all_writable(SegmentCursor, uint32_t n);

}  // namespace viaduct::paramnet
