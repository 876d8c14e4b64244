// SPDX-License-Identifier: BSD-2-Clause
// Memory that the library allocates and registers for the program (VipxAllocMemory): where the NIC's provider
// has memory that peers reach directly, it is of that kind.
#pragma once

#include <vipl.h>

#include "core/memory/region_table.hpp"

namespace viaduct::vipl {

struct Nic;

struct Allocation {
    Region region;  // whole pages
    bool of_provider = false;
    VIP_MEM_HANDLE handle = 0;
};

VIP_RETURN allocate_memory(Nic& nic, VIP_ULONG bytes, VIP_ULONG alignment,
                           const VIP_MEM_ATTRIBUTES* attributes, void** address, VIP_MEM_HANDLE* handle);
VIP_RETURN free_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle);
// For VipCloseNic: what the program has not freed goes with the NIC. No endpoint is left.
void free_all_memory(Nic& nic);

}  // namespace viaduct::vipl
