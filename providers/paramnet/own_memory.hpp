// SPDX-License-Identifier: BSD-2-Clause
// Registered memory of this process that is touched on behalf of a peer, or by a thread of ours. The program
// may have unmapped it and not told us: that must not end the process in a thread that the program knows
// nothing of. So the kernel is asked first whether all of it is mapped. Neither does it see what
// another thread does in the moment of the copy: to let the kernel copy (process_vm_writev) would, but halves
// the speed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "core/memory/mapped.hpp"

namespace viaduct::paramnet {

// False: some of the memory is not there, and nothing was copied. Writes as copy_rising() does.
bool write_own_memory(std::byte* to, const std::byte* from, size_t n);
bool read_own_memory(std::byte* to, const std::byte* from, size_t n);
// The same, and permissions are asked for too: what the peer's system calls do not reach may forbid it to us as well.
bool write_permitted_memory(std::byte* to, const std::byte* from, size_t n);
bool read_permitted_memory(std::byte* to, const std::byte* from, size_t n);
// As scatter() and gather(); they end before the first piece that is not there.
uint32_t scatter_where_mapped(SegmentCursor&, const std::byte* from, uint32_t n);
uint32_t gather_where_mapped(SegmentCursor&, std::byte* to, uint32_t n);
// All of the next bytes of the cursor: what a call of the system has not reached is not ours then.
bool may_be_read(SegmentCursor, uint32_t n);
bool may_be_written(SegmentCursor, uint32_t n);

}  // namespace viaduct::paramnet
