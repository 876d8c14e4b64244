// SPDX-License-Identifier: BSD-2-Clause
// A cache that keeps a registration after its message has to notice when the program unmaps the memory, and in
// a library there is no sure way to notice: hooks on free miss munmap, interposed munmap misses direct system
// calls and the C library's own calls, userfaultfd may be forbidden. So on a NIC that pins memory nothing is
// kept that the program could unmap: a user's buffer is registered for the life of its request, during which
// MPI forbids to free it. A NIC that finds memory by its virtual address in the moment of each transfer, as
// the default one does, cannot miss anything: what an address means is what the program means by it, whatever
// was unmapped and mapped in between. There registrations are kept, and grow together. Memory of
// mpip_alloc_mem is ours to unmap and stays registered until it is freed. All three are safe by construction.
#include "mpi-adi/transport/via/registration.hpp"

#include <algorithm>

#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

namespace {

constexpr size_t kMostKept = 256;
constexpr uintptr_t kPageBytes = 4096;

template <class ByBase>
Registration* around(ByBase& all, uintptr_t address, size_t bytes) {
    auto upper = all.upper_bound(address);
    if (upper == all.begin()) return nullptr;
    Registration& r = std::prev(upper)->second;
    return r.covers(address, bytes) ? &r : nullptr;
}

}  // namespace

// 0 when the range cannot be registered.
VIP_MEM_HANDLE RegistrationCache::register_range(uintptr_t base, size_t bytes) const {
    VIP_MEM_ATTRIBUTES attributes = {nic_.ptag, VIP_TRUE, nic_.rdma_read ? VIP_TRUE : VIP_FALSE};
    VIP_MEM_HANDLE handle = 0;
    const VIP_RETURN rc =
        VipRegisterMem(nic_.handle, reinterpret_cast<void*>(base), bytes, &attributes, &handle);
    return rc == VIP_SUCCESS ? handle : 0;
}

void RegistrationCache::deregister(const Registration& r) const {
    adi::ignore_result(VipDeregisterMem(nic_.handle, reinterpret_cast<void*>(r.base), r.handle[0]));
}

void RegistrationCache::drop(ByBase::iterator at) {
    if (last_used_ == &at->second) last_used_ = nullptr;
    deregister(at->second);
    kept_.erase(at);
}

// Drops the unused registration that was used longest ago.
void RegistrationCache::make_room() {
    auto oldest = kept_.end();
    for (auto i = kept_.begin(); i != kept_.end(); ++i) {
        if (i->second.users == 0 && (oldest == kept_.end() || i->second.last_used < oldest->second.last_used))
            oldest = i;
    }
    if (oldest != kept_.end()) drop(oldest);
}

// The pages of the range, together with what is kept and touches them. That may have been unmapped meanwhile:
// then the pages alone.
Registration* RegistrationCache::keep(uintptr_t address, size_t bytes) {
    const uintptr_t begin = address & ~(kPageBytes - 1);
    const uintptr_t end = (address + bytes + kPageBytes - 1) & ~(kPageBytes - 1);
    uintptr_t wide_begin = begin, wide_end = end;
    auto i = kept_.upper_bound(begin);
    if (i != kept_.begin()) --i;
    while (i != kept_.end() && i->second.base <= end) {
        const Registration& r = i->second;
        const auto here = i++;
        if (r.users != 0 || r.base + r.bytes < begin) continue;
        wide_begin = std::min(wide_begin, r.base);
        wide_end = std::max(wide_end, r.base + r.bytes);
        drop(here);
    }
    if (kept_.size() >= kMostKept) make_room();
    if (kept_.size() >= kMostKept) return nullptr;
    VIP_MEM_HANDLE handle = register_range(wide_begin, wide_end - wide_begin);
    if (handle == 0 && (wide_begin != begin || wide_end != end)) {
        wide_begin = begin;
        wide_end = end;
        handle = register_range(begin, end - begin);
    }
    if (handle == 0) return nullptr;
    const Registration fresh = {wide_begin, wide_end - wide_begin, handle, Registration::Kind::kept};
    const auto [at, added] = kept_.emplace(wide_begin, fresh);
    if (added) return &at->second;
    deregister(fresh);  // a shorter one with this beginning is in use
    return nullptr;
}

Registration* RegistrationCache::for_one_message(uintptr_t address, size_t bytes) const {
    const VIP_MEM_HANDLE handle = register_range(address, bytes);
    if (handle == 0) return nullptr;
    return new Registration{address, bytes, handle, Registration::Kind::message};
}

Registration* RegistrationCache::find_or_make(uintptr_t address, size_t bytes) {
    if (last_used_ != nullptr && last_used_->covers(address, bytes)) return last_used_;
    if (!blocks_.empty()) {
        if (Registration* block = around(blocks_, address, bytes)) return block;
    }
    if (nic_.pins_memory) return for_one_message(address, bytes);
    Registration* r = around(kept_, address, bytes);
    if (r == nullptr) r = keep(address, bytes);
    if (r == nullptr) return for_one_message(address, bytes);
    last_used_ = r;
    return r;
}

Registration* RegistrationCache::acquire(void* address, size_t bytes) {
    Registration* r = find_or_make(reinterpret_cast<uintptr_t>(address), bytes);
    if (r == nullptr) return nullptr;
    ++r->users;
    r->last_used = ++uses_;
    return r;
}

void RegistrationCache::release(Registration* r) {
    --r->users;
    if (r->kind != Registration::Kind::message) return;
    deregister(*r);
    delete r;
}

void* RegistrationCache::allocate(size_t bytes) {
    // Where the NIC can, this is memory that connected processes reach by plain copies.
    VIP_MEM_ATTRIBUTES attributes = {nic_.ptag, VIP_TRUE, nic_.rdma_read ? VIP_TRUE : VIP_FALSE};
    void* memory = nullptr;
    VIP_MEM_HANDLE handle = 0;
    if (VipxAllocMemory(nic_.handle, bytes, 0, &attributes, &memory, &handle) != VIP_SUCCESS) return nullptr;
    const auto base = reinterpret_cast<uintptr_t>(memory);
    blocks_.emplace(base, Registration{base, bytes, handle, Registration::Kind::library});
    return memory;
}

bool RegistrationCache::free(void* address) {
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end()) return false;
    give_back(found);
    return true;
}

void RegistrationCache::give_back(ByBase::iterator block) {
    adi::ignore_result(VipxFreeMemory(nic_.handle, reinterpret_cast<void*>(block->first), block->second.handle[0]));
    blocks_.erase(block);
}

void RegistrationCache::free_all() {
    while (!kept_.empty()) drop(kept_.begin());
    while (!blocks_.empty()) give_back(blocks_.begin());
}

}  // namespace viaduct::via
