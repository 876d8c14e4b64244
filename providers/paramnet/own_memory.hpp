// SPDX-License-Identifier: BSD-2-Clause
// Registered memory of this process that is touched on behalf of a peer, or by a thread of ours. The program
// may have unmapped or protected it and not told us, or have shortened the file behind it: that must not end the
// process in a thread that the program did not start. So the kernel checks first whether all of it may be
// touched. It does not tell what another thread does in the moment of the copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "core/memory/mapped.hpp"

namespace viaduct::paramnet {

// False: some of the memory may not be touched, and nothing was copied. Writes as copy_rising() does.
bool write_permitted_memory(std::byte* to, const std::byte* from, size_t n);
bool read_permitted_memory(std::byte* to, const std::byte* from, size_t n);
// As scatter() and gather(); they end before the first piece that may not be touched.
uint32_t scatter_where_permitted(SegmentCursor&, const std::byte* from, uint32_t n);
uint32_t gather_where_permitted(SegmentCursor&, std::byte* to, uint32_t n);
// All of the next bytes of the cursor: what a call of the system has not reached is not ours then.
bool may_be_read(SegmentCursor, uint32_t n);
bool may_be_written(SegmentCursor, uint32_t n);

}  // namespace viaduct::paramnet
