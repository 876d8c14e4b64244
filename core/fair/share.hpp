// SPDX-License-Identifier: BSD-2-Clause
// How much of a finite resource one user may have when the number of users to come is unknown: as much as stays free
// for others. One user alone gets half, two users get a third each, and the next user always finds some left.
#pragma once

#include <cstdint>

namespace viaduct::fair {

// How much more a user may take: the user holds `his` of the `used` units, and there are `capacity` in all.
constexpr uint64_t left(uint64_t capacity, uint64_t used, uint64_t his) {
    if (used >= capacity || his >= capacity - used) return 0;
    return (capacity - used - his) / 2;
}

}  // namespace viaduct::fair
