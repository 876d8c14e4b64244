// SPDX-License-Identifier: BSD-2-Clause
// The scatter/gather list of a work request.
#pragma once

#include <infiniband/verbs.h>

#include "core/vi/descriptor.hpp"
#include "providers/verbs/nic.hpp"

namespace viaduct::verbs {

inline constexpr uint32_t kMostSegments = 252;

// Writes the data segments of a descriptor, from number `skip` on, as scatter/gather entries; returns their number.
// Segments of length 0 are left out, and nothing else of them is checked (spec/descriptors 2.2 rule 4).
inline int gather_list(const NicContext& nic, const VIP_DESCRIPTOR* d, uint32_t skip, ibv_sge* out) {
    const VIP_DESCRIPTOR_SEGMENT* segments = segments_of(d);
    int n = 0;
    for (uint32_t i = skip; i < d->CS.SegCount && i < kMostSegments; ++i) {
        const VIP_DATA_SEGMENT& s = segments[i].Local;
        if (s.Length == 0) continue;
        out[n++] = ibv_sge{s.Data.AddressBits, s.Length, nic.keys.local_key(s.Handle)};
    }
    return n;
}

}  // namespace viaduct::verbs
