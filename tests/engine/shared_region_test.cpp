// SPDX-License-Identifier: BSD-2-Clause
// The memory that neighbours of a window share: only what its maker offers is taken for it.
#include "mpi-adi/engine/rma/shared_region.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace viaduct::mpi::rma {
namespace {

TEST(SharedRegion, IsTheSameForAllNeighbours) {
    SharedRegion made({100, 5000}, true), opened({100, 5000}, true);
    MemoryOffer offer;
    ASSERT_TRUE(made.create(&offer));
    ASSERT_TRUE(opened.open(offer));
    for (size_t i = 0; i < made.parts(); i++) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(opened.part(i)) % 4096, 0u);
        made.part(i)[0] = char('a' + i);
        EXPECT_EQ(opened.part(i)[0], char('a' + i));
        EXPECT_TRUE(made.line(i).lock.try_exclusive());
        EXPECT_FALSE(opened.line(i).lock.try_shared());
    }
    made.meeting().arrived = 7;
    EXPECT_EQ(opened.meeting().arrived, 7u);
    SharedRegion another({100, 5000}, true);
    EXPECT_TRUE(another.open(offer)) << "what is written there leaves the mark alone";
}

// One of the same size, under the numbers that were told.
TEST(SharedRegion, OfAnotherWindowIsRefused) {
    SharedRegion first({100}, false), second({100}, false), taker({100}, false);
    MemoryOffer offer, other;
    ASSERT_TRUE(first.create(&offer));
    ASSERT_TRUE(second.create(&other));
    MemoryOffer reused = offer;
    reused.descriptor = other.descriptor;
    EXPECT_FALSE(taker.open(reused));
    reused = other;
    reused.mark = offer.mark;
    EXPECT_FALSE(taker.open(reused));
    EXPECT_TRUE(taker.open(offer));
}

}  // namespace
}  // namespace viaduct::mpi::rma
