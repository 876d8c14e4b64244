// SPDX-License-Identifier: BSD-2-Clause
// Copies to and from registered memory of this process on behalf of a peer. The program may have unmapped it
// and not told us: that must not end the process in a thread that the program knows nothing of. So the kernel
// is asked first whether all of it is mapped. It sees neither permissions nor what another thread does in the
// moment of the copy: to let the kernel copy (process_vm_writev) would, but halves the speed.
#pragma once

#include <cstddef>

namespace viaduct::paramnet {

// False: some of the memory is not there, and nothing was copied. Writes as copy_rising() does.
bool write_own_memory(std::byte* to, const std::byte* from, size_t n);
bool read_own_memory(std::byte* to, const std::byte* from, size_t n);

}  // namespace viaduct::paramnet
