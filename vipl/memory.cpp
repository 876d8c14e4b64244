// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "vipl/library.hpp"
#include "vipl/thrown.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// Tag and flags of memory, from the attributes a program gives. VIP_SUCCESS or the answer of the call.
VIP_RETURN read_attributes(Nic& nic, const VIP_MEM_ATTRIBUTES* attributes, uint32_t* ptag, uint32_t* flags) {
    *ptag = 0;
    *flags = 0;
    if (attributes == nullptr) return VIP_SUCCESS;  // default tag, no RDMA (spec/compat V3)
    if (attributes->Ptag != nullptr) {              // NULL is the default tag (spec/compat V1)
        const std::lock_guard lock(nic.mutex);
        const Ptag* tag = find_ptag(nic, attributes->Ptag);
        if (tag == nullptr) return refuse_ptag(attributes->Ptag, nic.info.name);
        *ptag = tag->id;
    }
    if (attributes->EnableRdmaWrite) *flags |= kRegionRdmaWrite;
    if (attributes->EnableRdmaRead) {
        if (nic.info.rdma_read_mask == 0)
            return refuse(VIP_INVALID_RDMAREAD, "clear EnableRdmaRead, or open another NIC",
                          "EnableRdmaRead is set; NIC %s has no RDMA read", nic.info.name);
        *flags |= kRegionRdmaRead;
    }
    return VIP_SUCCESS;
}

// Whether the tag that was read is still the one the program named, so that no region gets the number of a
// tag that was destroyed meanwhile, and perhaps made anew. Nic::mutex held until the region carries the
// number: destroying looks for regions that do.
bool still_names(Nic& nic, const VIP_MEM_ATTRIBUTES* attributes, uint32_t ptag) {
    if (ptag == 0) return true;
    const Ptag* tag = find_ptag(nic, attributes->Ptag);
    return tag != nullptr && tag->id == ptag;
}

VIP_RETURN add_with_tag(Nic& nic, const Region& region, const VIP_MEM_ATTRIBUTES* attributes,
                        uint32_t* handle) {
    std::unique_lock lock(nic.mutex, std::defer_lock);
    if (region.ptag != 0) lock.lock();
    if (!still_names(nic, attributes, region.ptag)) return refuse_ptag(attributes->Ptag, nic.info.name);
    *handle = nic.regions->add(region);
    if (*handle != 0) return VIP_SUCCESS;
    return refuse(VIP_ERROR_RESOURCE, "deregister memory that is not used", "the table of %u regions is full",
                  kMaxRegions);
}

// No region with that handle, or none that holds the address.
VIP_RETURN refuse_region(const Nic& nic, uintptr_t address, VIP_MEM_HANDLE handle) {
    Region region;
    if (!nic.regions->snapshot(handle, &region))
        return refuse(VIP_INVALID_PARAMETER, "use the handle that VipRegisterMem has stored, once",
                      "memory handle %#x is not registered: it was deregistered, or never handed out", handle);
    return refuse(VIP_INVALID_PARAMETER, "pass the address that was registered",
                  "address %#llx does not fit memory handle %#x (%#llx to %#llx)",
                  static_cast<unsigned long long>(address), handle, static_cast<unsigned long long>(region.base),
                  static_cast<unsigned long long>(region.base + region.length));
}

// One more, or one less, region that may get its old tag back: such a tag is in use.
void count_returns(Nic& nic, uint32_t ptag, int change) {
    if (ptag != 0) nic.ptags[ptag]->returns += static_cast<uint32_t>(change);
}

// `before`: what the region was. Its tag stays in use until release_old_tag().
VIP_RETURN change_with_tag(Nic& nic, VIP_MEM_HANDLE handle, uintptr_t inside,
                           const VIP_MEM_ATTRIBUTES& attributes, uint32_t ptag, uint32_t flags,
                           Region* before) {
    const std::lock_guard lock(nic.mutex);
    if (!still_names(nic, &attributes, ptag)) return refuse_ptag(attributes.Ptag, nic.info.name);
    if (!nic.regions->snapshot(handle, before) || !nic.regions->change(handle, inside, ptag, flags))
        return refuse_region(nic, inside, handle);
    count_returns(nic, before->ptag, 1);
    return VIP_SUCCESS;
}

void release_old_tag(Nic& nic, const Region& before) {
    const std::lock_guard lock(nic.mutex);
    count_returns(nic, before.ptag, -1);
}

// A provider that keeps no record of its own of memory has no such operation.
bool device_knows(Status status) { return status == Status::ok || status == Status::not_supported; }

}  // namespace

VIP_RETURN create_ptag(Nic& nic, VIP_PROTECTION_HANDLE* out) {
    const std::lock_guard lock(nic.mutex);
    uint32_t id = 1;
    while (id < nic.ptags.size() && nic.ptags[id] != nullptr) ++id;
    if (id > nic.info.max_ptags)
        return refuse(VIP_ERROR_RESOURCE, "destroy tags that are not used",
                      "NIC %s has %u tags already; MaxPtags is %llu", nic.info.name, id - 1,
                      static_cast<unsigned long long>(nic.info.max_ptags));
    if (id >= nic.ptags.size()) nic.ptags.resize(id + 1, nullptr);  // memory runs short before anything has changed
    Ptag* tag = nic.library->ptags.take();
    if (tag == nullptr) return refuse_no_memory();
    const uintptr_t handle = handle_table.insert(HandleKind::ptag, tag);
    if (handle == 0) {
        nic.library->ptags.give_back(tag);
        return refuse_no_memory();
    }
    nic.ptags[id] = tag;
    tag->nic = &nic;
    tag->id = id;
    tag->vis = 0;
    tag->returns = 0;
    tag->handle.store(handle);
    *out = reinterpret_cast<VIP_PROTECTION_HANDLE>(handle);
    return VIP_SUCCESS;
}

Ptag* find_ptag(Nic& nic, VIP_PROTECTION_HANDLE handle) {
    auto* tag = static_cast<Ptag*>(handle_table.find(handle, HandleKind::ptag));
    if (tag == nullptr || tag->nic != &nic || tag->handle.load() != reinterpret_cast<uintptr_t>(handle))
        return nullptr;
    return tag;
}

VIP_RETURN destroy_ptag(Nic& nic, VIP_PROTECTION_HANDLE handle) {
    const std::lock_guard lock(nic.mutex);
    Ptag* tag = find_ptag(nic, handle);
    if (tag == nullptr) return refuse_handle("ProtectionHandle", handle, HandleKind::ptag);
    const uint32_t regions = nic.regions->count_with_ptag(tag->id);
    if (tag->vis != 0 || tag->returns != 0 || regions != 0)
        return refuse(VIP_ERROR_RESOURCE, "destroy the VIs and deregister the memory first",
                      "the protection tag is used by %u VIs and %u memory regions", tag->vis, regions);
    handle_table.remove(handle);
    tag->handle.store(0);
    nic.ptags[tag->id] = nullptr;
    nic.library->ptags.give_back(tag);
    return VIP_SUCCESS;
}

void kill_ptags(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    for (Ptag* tag : nic.ptags) {
        if (tag == nullptr) continue;
        handle_table.remove(reinterpret_cast<void*>(tag->handle.exchange(0)));
        nic.library->ptags.give_back(tag);
    }
    nic.ptags.clear();
}

bool is_mapped(const void* address, size_t length) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~(page - 1);
    const uintptr_t end = reinterpret_cast<uintptr_t>(address) + length;
    // Starts nothing, and looks at the mappings only, where mincore would look at each page: ENOMEM is a
    // hole.
    return ::msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0 || errno != ENOMEM;
}

VIP_RETURN register_memory(Nic& nic, void* address, VIP_ULONG length, const VIP_MEM_ATTRIBUTES* attributes,
                           VIP_MEM_HANDLE* out) {
    Region region;
    region.base = reinterpret_cast<uintptr_t>(address);
    region.length = length;
    return register_region(nic, region, attributes, out);
}

VIP_RETURN register_region(Nic& nic, const Region& place, const VIP_MEM_ATTRIBUTES* attributes,
                           VIP_MEM_HANDLE* out) {
    Region region = place;
    const auto base = static_cast<uintptr_t>(region.base);
    const uint64_t length = region.length;
    void* address = reinterpret_cast<void*>(base);
    if (length == 0)
        return refuse(VIP_INVALID_PARAMETER, "register at least one byte", "Length is 0 (address %p)", address);
    if (base + length < base)
        return refuse(VIP_INVALID_PARAMETER, "look at address and length", "address %p and length %llu wrap around",
                      address, static_cast<unsigned long long>(length));
    const VIP_RETURN bad = read_attributes(nic, attributes, &region.ptag, &region.flags);
    if (bad != VIP_SUCCESS) return bad;
    if (length > nic.info.max_register_block_bytes)
        return refuse(VIP_ERROR_RESOURCE, "register in pieces",
                      "Length is %llu; MaxRegisterBlockBytes of NIC %s is %llu",
                      static_cast<unsigned long long>(length), nic.info.name,
                      static_cast<unsigned long long>(nic.info.max_register_block_bytes));
    if (!is_mapped(address, length))
        return refuse(VIP_INVALID_PARAMETER, "allocate the memory first; look at address and length",
                      "no memory is mapped at all of address %p length %llu", address,
                      static_cast<unsigned long long>(length));
    if (nic.regions->live() >= nic.info.max_register_regions)
        return refuse(VIP_ERROR_RESOURCE, "deregister memory that is not used, or register larger pieces",
                      "%u regions are registered; MaxRegisterRegions of NIC %s is %llu", nic.regions->live(),
                      nic.info.name, static_cast<unsigned long long>(nic.info.max_register_regions));
    if (nic.regions->bytes() + length > nic.info.max_register_bytes)
        return refuse(VIP_ERROR_RESOURCE, "deregister memory that is not used",
                      "Length %llu and the %llu bytes registered are more than MaxRegisterBytes %llu of NIC %s",
                      static_cast<unsigned long long>(length), static_cast<unsigned long long>(nic.regions->bytes()),
                      static_cast<unsigned long long>(nic.info.max_register_bytes), nic.info.name);

    LeasePart bytes(nic.leases, kagent::kLeaseBytes), one(nic.leases, kagent::kLeaseRegions);
    if (!bytes.use(length)) return refuse_quota("registered memory", "agent.max_registered_bytes");
    if (!one.use(1)) return refuse_quota("memory regions", "agent.max_regions");
    uint32_t handle = 0;
    const VIP_RETURN added = add_with_tag(nic, region, attributes, &handle);
    if (added != VIP_SUCCESS) return added;
    if (!device_knows(nic.ops->region_added(nic.context, handle, region))) {
        nic.regions->remove(handle, base, &region);
        return refuse(VIP_ERROR_RESOURCE, "look at ulimit -l (locked memory): the NIC pins what is registered",
                      "NIC %s cannot take address %p length %llu", nic.info.name, address,
                      static_cast<unsigned long long>(length));
    }
    bytes.keep();
    one.keep();
    *out = handle;
    return VIP_SUCCESS;
}

VIP_RETURN deregister_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle) {
    const auto base = reinterpret_cast<uintptr_t>(address);
    Region removed;
    if (address == nullptr || !nic.regions->remove(handle, base, &removed)) return refuse_region(nic, base, handle);
    nic.ops->region_removed(nic.context, handle, removed);
    nic.leases.give_back(kagent::kLeaseBytes, removed.length);
    nic.leases.give_back(kagent::kLeaseRegions, 1);
    return VIP_SUCCESS;
}

VIP_RETURN query_memory(Nic& nic, void* address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES* out) {
    Region region;
    const auto inside = reinterpret_cast<uintptr_t>(address);
    if (!nic.regions->snapshot(handle, &region) || inside - region.base >= region.length)
        return refuse_region(nic, inside, handle);
    out->Ptag = nullptr;
    if (region.ptag != 0) {
        const std::lock_guard lock(nic.mutex);
        if (region.ptag < nic.ptags.size() && nic.ptags[region.ptag] != nullptr)
            out->Ptag = reinterpret_cast<VIP_PROTECTION_HANDLE>(nic.ptags[region.ptag]->handle.load());
    }
    out->EnableRdmaWrite = (region.flags & kRegionRdmaWrite) != 0 ? VIP_TRUE : VIP_FALSE;
    out->EnableRdmaRead = (region.flags & kRegionRdmaRead) != 0 ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
}

VIP_RETURN set_memory_attributes(Nic& nic, void* address, VIP_MEM_HANDLE handle,
                                 const VIP_MEM_ATTRIBUTES& attributes) {
    const auto inside = reinterpret_cast<uintptr_t>(address);
    Region before;
    if (!nic.regions->snapshot(handle, &before)) return refuse_region(nic, inside, handle);
    uint32_t ptag = 0;
    uint32_t flags = 0;
    const VIP_RETURN bad = read_attributes(nic, &attributes, &ptag, &flags);
    if (bad != VIP_SUCCESS) return bad;
    const VIP_RETURN changed = change_with_tag(nic, handle, inside, attributes, ptag, flags, &before);
    if (changed != VIP_SUCCESS) return changed;
    Region now = before;
    now.ptag = ptag;
    now.flags = flags;
    const bool known = device_knows(nic.ops->region_changed(nic.context, handle, now));
    if (!known) nic.regions->change(handle, inside, before.ptag, before.flags);
    release_old_tag(nic, before);
    return known ? VIP_SUCCESS
                 : refuse(VIP_ERROR_RESOURCE, "deregister the memory and register it with the attributes",
                          "NIC %s cannot change memory handle %#x", nic.info.name, handle);
}

}  // namespace viaduct::vipl
