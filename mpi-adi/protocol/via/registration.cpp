// SPDX-License-Identifier: BSD-2-Clause
// A cache that keeps a registration after its message has to know when the program unmaps the memory, and in
// a library there is no sure way to know: hooks on free miss munmap, interposed munmap misses direct system
// calls and the C library's own calls, userfaultfd may be forbidden. So nothing is cached that the program
// could unmap: a user's buffer is registered for the life of its request, during which MPI forbids to free
// it; memory of mpip_alloc_mem is ours to unmap and stays registered until it is freed. Both are safe by
// construction. What it costs is one VipRegisterMem for a long message; the default NIC pins nothing, so that
// is a table entry.
#include "mpi-adi/protocol/via/registration.hpp"

#include <viaduct/ext.h>

#include <map>

#include "mpi-adi/protocol/via/device.hpp"

namespace viaduct::via {

namespace {

struct Block {
    size_t bytes;
    VIP_MEM_HANDLE handle;
};
std::map<char*, Block> blocks;  // by address

std::map<char*, Block>::iterator block_around(void* address, size_t bytes) {
    auto above = blocks.upper_bound(static_cast<char*>(address));
    if (above == blocks.begin()) return blocks.end();
    --above;
    const size_t offset = static_cast<size_t>(static_cast<char*>(address) - above->first);
    return offset <= above->second.bytes && bytes <= above->second.bytes - offset ? above : blocks.end();
}

VIP_MEM_HANDLE enter(void* address, size_t bytes, bool write, bool read) {
    VIP_MEM_ATTRIBUTES attributes = {viadev.ptag, write ? VIP_TRUE : VIP_FALSE, read ? VIP_TRUE : VIP_FALSE};
    VIP_MEM_HANDLE handle = 0;
    return VipRegisterMem(viadev.nic, address, bytes, &attributes, &handle) == VIP_SUCCESS ? handle : 0;
}

}  // namespace

VIP_MEM_HANDLE register_buffer(void* address, size_t bytes, Access access) {
    if (!blocks.empty()) {
        const auto block = block_around(address, bytes);
        if (block != blocks.end()) return block->second.handle;
    }
    return enter(address, bytes, access == Access::remote_write, access == Access::remote_read);
}

void unregister_buffer(void* address, VIP_MEM_HANDLE handle) {
    if (!blocks.empty()) {
        const auto block = block_around(address, 1);
        if (block != blocks.end() && block->second.handle == handle) return;
    }
    VipDeregisterMem(viadev.nic, address, handle);
}

void* allocate_registered(size_t bytes) {
    // Where the NIC can, this is memory that connected processes reach by plain copies.
    VIP_MEM_ATTRIBUTES attributes = {viadev.ptag, VIP_TRUE, viadev.rdma_read ? VIP_TRUE : VIP_FALSE};
    void* memory = nullptr;
    VIP_MEM_HANDLE handle = 0;
    if (VipxAllocMemory(viadev.nic, bytes, 0, &attributes, &memory, &handle) != VIP_SUCCESS) return nullptr;
    blocks.emplace(static_cast<char*>(memory), Block{bytes, handle});
    return memory;
}

bool free_registered(void* address) {
    const auto found = blocks.find(static_cast<char*>(address));
    if (found == blocks.end()) return false;
    VipxFreeMemory(viadev.nic, found->first, found->second.handle);
    blocks.erase(found);
    return true;
}

void free_all_registered() {
    while (!blocks.empty()) free_registered(blocks.begin()->first);
}

}  // namespace viaduct::via
