// SPDX-License-Identifier: BSD-2-Clause
// Registration of user buffers for long messages (adi-facts 11, C55, C56). See registration.cpp for why it is
// safe.
#pragma once

#include <vipl.h>

#include <cstddef>

namespace viaduct::via {

enum class Access { local, remote_write, remote_read };

// A handle that covers the range, 0 when it cannot be registered.
VIP_MEM_HANDLE register_buffer(void* address, size_t bytes, Access access);
void unregister_buffer(void* address, VIP_MEM_HANDLE handle);

// Memory the library owns, registered until it is freed: what MPI_Alloc_mem should give out.
void* allocate_registered(size_t bytes);
// False when the address is not from allocate_registered.
bool free_registered(void* address);
void free_all_registered();

}  // namespace viaduct::via
