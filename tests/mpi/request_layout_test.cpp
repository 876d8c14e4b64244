// SPDX-License-Identifier: BSD-2-Clause
// What a one-sided request says of its target's items is checked before anything is done with it.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "mpi-adi/engine/rma/layout.hpp"

using namespace viaduct::mpi;
using namespace viaduct::mpi::rma;

namespace {

Head head_of(Kind kind, uint64_t count, uint64_t bytes) {
    return {.kind = kind, .count = count, .bytes = bytes};
}

TypeRef items(const std::vector<WireRun>& runs, int64_t extent) { return unflatten(runs, extent); }

TEST(RequestLayout, DataIsAtMostWhatTheItemsHold) {
    const TypeRef eight = items({{0, 8, 1, 0}}, 8);
    for (const Kind kind : {Kind::put, Kind::get, Kind::accumulate, Kind::get_accumulate}) {
        EXPECT_TRUE(has_room(head_of(kind, 1, 8), *eight));
        EXPECT_TRUE(has_room(head_of(kind, 2, 9), *eight));
        EXPECT_TRUE(has_room(head_of(kind, 0, 0), *eight));
        EXPECT_FALSE(has_room(head_of(kind, 1, 9), *eight));
        EXPECT_FALSE(has_room(head_of(kind, 1, 15), *eight));  // less than another item
        EXPECT_FALSE(has_room(head_of(kind, 0, 1), *eight));
    }
}

TEST(RequestLayout, ItemsOfNothingHoldNothing) {
    const TypeRef none = items({}, 0);
    ASSERT_NE(none.get(), nullptr);
    EXPECT_TRUE(has_room(head_of(Kind::put, 5, 0), *none));
    EXPECT_FALSE(has_room(head_of(Kind::put, 5, 1), *none));
    EXPECT_FALSE(has_room(head_of(Kind::get, UINT64_MAX, 0), *none));
}

}  // namespace
