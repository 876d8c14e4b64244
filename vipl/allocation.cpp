// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/allocation.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <exception>

#include "core/shm/own_mapping.hpp"
#include "vipl/memory.hpp"
#include "vipl/nic.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

// Where the provider has no memory of its own: the program's own kind, aligned.
bool allocate_plain(uint64_t bytes, uint64_t alignment, Region* out) {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t whole = (bytes + page - 1) / page * page;
    const uint64_t slack = alignment > page ? alignment : 0;
    void* memory = map_own(whole + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (memory == nullptr) return false;
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const uint64_t at = slack != 0 ? (begin + alignment - 1) & ~(alignment - 1) : begin;
    if (at != begin) ::munmap(memory, at - begin);
    if (at - begin != slack) ::munmap(reinterpret_cast<void*>(at + whole), begin + slack - at);
    out->base = at;
    out->length = whole;
    return true;
}

void release(const Nic& nic, const Allocation& a) {
    if (a.of_provider) {
        nic.ops->memory_free(nic.context, a.region);
    } else {
        ::munmap(reinterpret_cast<void*>(a.region.base), a.region.length);
    }
}

}  // namespace

VIP_RETURN allocate_memory(Nic& nic, VIP_ULONG bytes, VIP_ULONG alignment,
                           const VIP_MEM_ATTRIBUTES* attributes, void** address, VIP_MEM_HANDLE* handle) {
    if (bytes == 0) return refuse(VIP_INVALID_PARAMETER, "ask for at least one", "Bytes is 0");
    if ((alignment != 0 && !std::has_single_bit(alignment)) || alignment > kMaxAlignment)
        return refuse(VIP_INVALID_PARAMETER, "0 means a page", "Alignment is %lu; powers of two up to %llu are allowed",
                      alignment, static_cast<unsigned long long>(kMaxAlignment));
    if (bytes > nic.info.max_register_block_bytes)
        return refuse(VIP_ERROR_RESOURCE, "allocate in pieces", "Bytes is %lu; MaxRegisterBlockBytes of NIC %s is %llu",
                      bytes, nic.info.name, static_cast<unsigned long long>(nic.info.max_register_block_bytes));
    Allocation a;
    a.of_provider = nic.ops->memory_alloc(nic.context, bytes, alignment, &a.region) == Status::ok;
    if (!a.of_provider && !allocate_plain(bytes, alignment, &a.region))
        return refuse(VIP_ERROR_RESOURCE, "look at free memory, ulimit -v and the cgroup", "no memory for %lu bytes",
                      bytes);
    Region visible = a.region;
    visible.length = bytes;  // the program's attributes speak of what it asked for
    try {
        const VIP_RETURN answer = register_region(nic, visible, attributes, &a.handle);
        if (answer != VIP_SUCCESS) {
            release(nic, a);
            return answer;
        }
        const std::lock_guard lock(nic.mutex);
        nic.allocations.push_back(a);
    } catch (const std::exception&) {
        if (a.handle != 0) deregister_memory(nic, reinterpret_cast<void*>(a.region.base), a.handle);
        release(nic, a);
        throw;
    }
    *address = reinterpret_cast<void*>(a.region.base);
    *handle = a.handle;
    return VIP_SUCCESS;
}

VIP_RETURN free_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle) {
    Allocation a;
    {
        const std::lock_guard lock(nic.mutex);
        const auto found =
            std::find_if(nic.allocations.begin(), nic.allocations.end(), [&](const Allocation& one) {
                return one.region.base == reinterpret_cast<uintptr_t>(address) && one.handle == handle;
            });
        if (found == nic.allocations.end())
            return refuse(VIP_INVALID_PARAMETER, "pass what VipxAllocMemory has stored, once",
                          "address %p with memory handle %#x was not allocated on this NIC handle, or was given back",
                          address, handle);
        a = *found;
        nic.allocations.erase(found);
    }
    // A program that has deregistered it by itself is right too.
    deregister_memory(nic, address, handle);
    release(nic, a);
    return VIP_SUCCESS;
}

void free_all_memory(Nic& nic) {
    for (const Allocation& a : nic.allocations) release(nic, a);
    nic.allocations.clear();
}

}  // namespace viaduct::vipl
