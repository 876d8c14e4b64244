// SPDX-License-Identifier: BSD-2-Clause
// How much of something finite one user may have, where the number of users to come is unknown: as much as
// stays free beside it. One user alone gets half, two get a third each, and the next user always finds
// some.
#pragma once

#include <cstdint>

namespace viaduct::fair {

// What a user that holds `his` of the `used` ones may take yet, of `capacity` in all.
constexpr uint64_t left(uint64_t capacity, uint64_t used, uint64_t his) {
    if (used >= capacity || his >= capacity - used) return 0;
    return (capacity - used - his) / 2;
}

}  // namespace viaduct::fair
