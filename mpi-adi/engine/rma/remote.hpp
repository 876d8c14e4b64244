// SPDX-License-Identifier: BSD-2-Clause
// Memory of a member that this process' NIC reaches: what a window has of such a member. See remote_access.hpp for the
// operations.
#pragma once

#include <memory>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::mpi::rma {

struct Remote {
    mpip_region memory{};  // of the member, as its NIC knows it
    bool placed = false;   // a put that is done lies there; else only behind a get that is done
    bool written = false;  // by a put that no flush has followed

    // Of atomic operations (remote_words.hpp).
    mpip_region lock{};     // the word of its lock, if it has bytes
    bool words = false;     // all change words there by atomic operations of processors or the NIC
    bool changed = false;   // by the NIC, and perhaps not yet done
    bool messages = false;  // accumulates by message that no flush has followed
};

// Memory of this process that is open to the NICs of others.
class Exposed {
public:
    Exposed() = default;
    Exposed(struct protocol& by, void* memory, size_t bytes) : by_(&by) {
        held_ = by.pt_expose(memory, bytes, &region_);
    }
    ~Exposed() {
        if (held_ != nullptr) by_->pt_conceal(held_);
    }
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;

    bool is_open() const { return held_ != nullptr; }
    const mpip_region& region() const { return region_; }

private:
    struct protocol* by_ = nullptr;
    void* held_ = nullptr;
    mpip_region region_{};
};

}  // namespace viaduct::mpi::rma
