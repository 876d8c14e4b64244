// SPDX-License-Identifier: BSD-2-Clause
// Names of requests on the wire: index and generation, never an address (spec/adi 2.3), so that a
// stale or forged name from a peer finds nothing instead of another request's memory. One table per module, used
// under the engine's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

class RequestIds {
public:
    RequestIds() { slots_.reserve(256); }
    // Where the count of active requests (pt_nactv) is kept. Before the first name.
    void count_in(unsigned* active) { active_ = active; }

    // Gives the request a name (kept in r_id).
    void add(mpip_req_t* req) {
        uint32_t index;
        if (free_ != kNone) {
            index = free_;
            free_ = slots_[index].next;
        } else {
            index = static_cast<uint32_t>(slots_.size());
            slots_.push_back({});
        }
        Slot& slot = slots_[index];
        slot.request = req;
        ++*active_;
        req->r_id = static_cast<reqaddr_t>(slot.generation) << 32 | (index + 1);
    }

    // The request of that name, or nullptr.
    mpip_req_t* find(reqaddr_t id) const {
        const uint32_t index = static_cast<uint32_t>(id) - 1;  // 0 becomes the largest
        if (index >= slots_.size() || slots_[index].generation != id >> 32) return nullptr;
        return slots_[index].request;
    }

    // Ends the name.
    void remove(mpip_req_t* req) {
        if (find(req->r_id) != req) return;
        const uint32_t index = static_cast<uint32_t>(req->r_id) - 1;
        Slot& slot = slots_[index];
        slot.request = nullptr;
        --*active_;
        ++slot.generation;
        slot.next = free_;
        free_ = index;
        req->r_id = 0;
    }

    // All requests of one process, named at this moment. For the slow path of a lost peer.
    std::vector<mpip_req_t*> of(const process_t* proc) const {
        std::vector<mpip_req_t*> found;
        for (const Slot& slot : slots_) {
            if (slot.request != nullptr && slot.request->r_proc == proc) found.push_back(slot.request);
        }
        return found;
    }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Slot {
        mpip_req_t* request = nullptr;
        uint32_t generation = 1;
        uint32_t next = kNone;
    };
    unsigned* active_ = nullptr;
    std::vector<Slot> slots_;
    uint32_t free_ = kNone;
};

}  // namespace viaduct::adi
