// SPDX-License-Identifier: BSD-2-Clause
// From a VIPL memory handle to the device's two keys. One array, indexed as the region table is; read on hot
// paths without a lock, written by the calls that register.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/memory/region_table.hpp"
#include "viaduct/types.hpp"

namespace viaduct::verbs {

class RegionKeys {
public:
    RegionKeys() = default;
    ~RegionKeys();
    RegionKeys(const RegionKeys&) = delete;
    RegionKeys& operator=(const RegionKeys&) = delete;

    bool allocate(ibv_pd* pd, bool atomics);
    Status add(uint32_t handle, const Region&);
    Status change(uint32_t handle, const Region& now);
    void remove(uint32_t handle);
    void clear();

    // 0 (no device key is) when the handle is not live: the device then refuses what is posted with it.
    uint32_t local_key(uint32_t handle) const {
        const Entry& e = entries_[handle & ((1u << kRegionIndexBits) - 1)];
        return e.handle.load(std::memory_order_acquire) == handle ? e.local.load(std::memory_order_relaxed)
                                                                  : 0;
    }
    uint32_t remote_key(uint32_t handle) const {
        const Entry& e = entries_[handle & ((1u << kRegionIndexBits) - 1)];
        return e.handle.load(std::memory_order_acquire) == handle ? e.remote.load(std::memory_order_relaxed)
                                                                  : 0;
    }

private:
    struct Entry {
        std::atomic<uint32_t> handle;
        std::atomic<uint32_t> local;
        std::atomic<uint32_t> remote;
        uint32_t access;
        ibv_mr* now;
        // What the region was before its attributes grew: peers may hold that key, and it allows no more than
        // the present one.
        ibv_mr* before;
    };

    Entry* entry(uint32_t handle) const { return entries_ + (handle & ((1u << kRegionIndexBits) - 1)); }
    ibv_mr* make(const Region&, uint32_t* access) const;

    ibv_pd* pd_ = nullptr;
    bool atomics_ = false;  // the device has them
    Entry* entries_ = nullptr;  // pages that are never used are never touched
    std::mutex mutex_;
};

}  // namespace viaduct::verbs
