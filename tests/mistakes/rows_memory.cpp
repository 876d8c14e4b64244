// SPDX-License-Identifier: BSD-2-Clause
// Registered memory and protection tags.
#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

std::string refused(void* address, VIP_ULONG length, VIP_PROTECTION_HANDLE tag = nullptr) {
    VIP_MEM_ATTRIBUTES a{};
    a.Ptag = tag;
    VIP_MEM_HANDLE handle;
    VipRegisterMem(nic(), address, length, &a, &handle);
    return last(nic());
}

unsigned char some_bytes[64];

std::string no_bytes() { return refused(some_bytes, 0); }
std::string unmapped() { return refused(reinterpret_cast<void*>(uintptr_t{0x10000}), 4096); }
std::string wrapping() { return refused(some_bytes, ~VIP_ULONG{0}); }

std::string destroyed_tag() {
    VIP_PROTECTION_HANDLE tag;
    must(VipCreatePtag(nic(), &tag), "VipCreatePtag");
    must(VipDestroyPtag(nic(), tag), "VipDestroyPtag");
    return refused(some_bytes, sizeof some_bytes, tag);
}

std::string deregister_twice() {
    VIP_MEM_HANDLE handle;
    must(VipRegisterMem(nic(), some_bytes, sizeof some_bytes, nullptr, &handle), "VipRegisterMem");
    must(VipDeregisterMem(nic(), some_bytes, handle), "VipDeregisterMem");
    VipDeregisterMem(nic(), some_bytes, handle);
    return last(nic());
}

std::string deregister_elsewhere() {
    VIP_MEM_HANDLE handle;
    must(VipRegisterMem(nic(), some_bytes, sizeof some_bytes, nullptr, &handle), "VipRegisterMem");
    VipDeregisterMem(nic(), some_bytes + 8, handle);
    const std::string text = last(nic());
    VipDeregisterMem(nic(), some_bytes, handle);
    return text;
}

std::string query_outside() {
    const Memory memory(nic());
    VIP_MEM_ATTRIBUTES a;
    VipQueryMem(nic(), memory.bytes + kBytes, memory.handle, &a);
    return last(nic());
}

std::string change_unknown() {
    VIP_MEM_ATTRIBUTES a{};
    VipSetMemAttributes(nic(), some_bytes, 0x7fff0001, &a);
    return last(nic());
}

std::string used_tag() {
    VIP_PROTECTION_HANDLE tag;
    must(VipCreatePtag(nic(), &tag), "VipCreatePtag");
    std::string text;
    {
        const Memory memory(nic(), tag);
        VipDestroyPtag(nic(), tag);
        text = last(nic());
    }
    VipDestroyPtag(nic(), tag);
    return text;
}

std::string odd_alignment() {
    VIP_PVOID address;
    VIP_MEM_HANDLE handle;
    VipxAllocMemory(nic(), 4096, 100, nullptr, &address, &handle);
    return last(nic());
}

std::string free_foreign() {
    VipxFreeMemory(nic(), some_bytes, 1);
    return last(nic());
}

}  // namespace

Rows rows_memory() {
    return {
        {"memory.empty", "VipRegisterMem of no bytes", no_bytes, {"VipRegisterMem", "Length is 0"}},
        {"memory.unmapped", "VipRegisterMem of memory that is not there", unmapped, {"no memory is mapped", "0x10000"}},
        {"memory.wrap", "VipRegisterMem with a length that wraps around", wrapping, {"wrap around"}},
        {"memory.ptag", "VipRegisterMem with a tag that was destroyed", destroyed_tag, {"VIP_INVALID_PTAG", "Ptag"}},
        {"memory.twice", "VipDeregisterMem twice", deregister_twice, {"VipDeregisterMem", "is not registered"}},
        {"memory.elsewhere",
         "VipDeregisterMem with another address",
         deregister_elsewhere,
         {"does not fit memory handle"}},
        {"memory.outside",
         "VipQueryMem behind the end of a region",
         query_outside,
         {"VipQueryMem", "does not fit memory handle"}},
        {"memory.unknown",
         "VipSetMemAttributes with a handle that was never handed out",
         change_unknown,
         {"0x7fff0001", "is not registered"}},
        {"ptag.used", "VipDestroyPtag while memory has the tag", used_tag, {"VipDestroyPtag", "1 memory regions"}},
        {"alloc.alignment",
         "VipxAllocMemory with an alignment that is no power of two",
         odd_alignment,
         {"Alignment is 100", "powers of two"}},
        {"alloc.foreign",
         "VipxFreeMemory of memory that it did not allocate",
         free_foreign,
         {"VipxFreeMemory", "was not allocated"}},
    };
}

}  // namespace mistakes
