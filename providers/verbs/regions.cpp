// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/regions.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "core/shm/own_mapping.hpp"
#include "providers/verbs/atomic.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr uint32_t kEntries = kMaxRegions + 1;

uint32_t wanted_access(const Region& region, bool atomics) {
    // VIA has no memory that may be sent but not received into. Relaxed ordering is never asked for:
    // programs watch the last bytes of an RDMA write (spec/compat T10, T11).
    uint32_t access = IBV_ACCESS_LOCAL_WRITE;
    if ((region.flags & kRegionRdmaWrite) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
    if ((region.flags & kRegionRdmaRead) != 0) access |= IBV_ACCESS_REMOTE_READ;
    return access | atomic_access(atomics, access);
}

void drop(ibv_mr*& mr) {
    if (mr != nullptr) ops->dereg_mr(mr);
    mr = nullptr;
}

}  // namespace

RegionKeys::~RegionKeys() {
    if (entries_ != nullptr) ::munmap(entries_, sizeof(Entry) * kEntries);
}

bool RegionKeys::allocate(ibv_pd* pd, bool atomics) {
    pd_ = pd;
    atomics_ = atomics;
    void* memory =
        map_own(sizeof(Entry) * kEntries, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (memory == nullptr) return false;
    entries_ = static_cast<Entry*>(memory);
    return true;
}

ibv_mr* RegionKeys::make(const Region& region, uint32_t* access) const {
    *access = wanted_access(region, atomics_);
    auto* base = reinterpret_cast<void*>(region.base);
    ibv_mr* mr = ops->reg_mr(pd_, base, region.length, static_cast<int>(*access));
    // Memory that is mapped for reading only can still be sent from.
    if (mr == nullptr && (errno == EFAULT || errno == EACCES || errno == EPERM) &&
        (*access & IBV_ACCESS_REMOTE_WRITE) == 0) {
        *access &= ~uint32_t{IBV_ACCESS_LOCAL_WRITE};
        mr = ops->reg_mr(pd_, base, region.length, static_cast<int>(*access));
    }
    return mr;
}

Status RegionKeys::add(uint32_t handle, const Region& region) {
    uint32_t access = 0;
    ibv_mr* mr = make(region, &access);
    if (mr == nullptr) return Status::out_of_resources;
    const std::lock_guard lock(mutex_);
    Entry& e = *entry(handle);
    e.now = mr;
    e.access = access;
    e.local.store(mr->lkey, std::memory_order_relaxed);
    e.remote.store(mr->rkey, std::memory_order_relaxed);
    e.handle.store(handle, std::memory_order_release);
    return Status::ok;
}

Status RegionKeys::change(uint32_t handle, const Region& now) {
    const std::lock_guard lock(mutex_);
    Entry& e = *entry(handle);
    if (e.handle.load(std::memory_order_relaxed) != handle) return Status::invalid;
    const uint32_t wanted = wanted_access(now, atomics_) & (e.access | ~uint32_t{IBV_ACCESS_LOCAL_WRITE});
    if (wanted == e.access) return Status::ok;  // tags are not the device's business
    uint32_t access = 0;
    ibv_mr* mr = make(now, &access);
    if (mr == nullptr) return Status::out_of_resources;
    const bool grown = (e.access & ~access) == 0;
    drop(e.before);
    if (grown) {
        e.before = e.now;
    } else {
        drop(e.now);
    }
    e.now = mr;
    e.access = access;
    e.local.store(mr->lkey, std::memory_order_relaxed);
    e.remote.store(mr->rkey, std::memory_order_release);
    return Status::ok;
}

void RegionKeys::remove(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    Entry& e = *entry(handle);
    if (e.handle.load(std::memory_order_relaxed) != handle) return;
    e.handle.store(0, std::memory_order_release);
    drop(e.now);
    drop(e.before);
}

void RegionKeys::clear() {
    if (entries_ == nullptr) return;
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 1; i < kEntries; ++i) {
        if (entries_[i].handle.load(std::memory_order_relaxed) == 0) continue;
        entries_[i].handle.store(0, std::memory_order_relaxed);
        drop(entries_[i].now);
        drop(entries_[i].before);
    }
}

}  // namespace viaduct::verbs
