// SPDX-License-Identifier: BSD-2-Clause
// Protection tags and registered memory. All of it is local: limits are leased from the agent in big pieces,
// the region table is memory that peers can read.
#pragma once

#include <vipl.h>

#include <atomic>

#include "vipl/nic.hpp"

namespace viaduct::vipl {

struct Ptag {
    std::atomic<uintptr_t> handle{0};
    Nic* nic = nullptr;
    uint32_t id = 0;       // in region table and VIs; never 0, which is the NULL tag
    uint32_t vis = 0;      // VIs that carry it; under Nic::mutex
    uint32_t returns = 0;  // regions on their way to another tag that may still come back; under Nic::mutex
};

VIP_RETURN create_ptag(Nic& nic, VIP_PROTECTION_HANDLE* out);
VIP_RETURN destroy_ptag(Nic& nic, VIP_PROTECTION_HANDLE handle);
// nullptr when the handle is no tag of this NIC. Nic::mutex held.
Ptag* find_ptag(Nic& nic, VIP_PROTECTION_HANDLE handle);
void kill_ptags(Nic& nic);

VIP_RETURN register_memory(Nic& nic, void* address, VIP_ULONG length, const VIP_MEM_ATTRIBUTES* attributes,
                           VIP_MEM_HANDLE* out);
// The same; what region there is apart from tag and flags is said by the caller.
VIP_RETURN register_region(Nic& nic, const Region& place, const VIP_MEM_ATTRIBUTES* attributes,
                           VIP_MEM_HANDLE* out);
VIP_RETURN deregister_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle);
VIP_RETURN query_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES* out);
VIP_RETURN set_memory_attributes(Nic& nic, void* address, VIP_MEM_HANDLE handle,
                                 const VIP_MEM_ATTRIBUTES& attributes);

// Whether every page of the range is mapped.
bool is_mapped(const void* address, size_t length);

}  // namespace viaduct::vipl
