// SPDX-License-Identifier: BSD-2-Clause
// VipxWriteNow (viaduct/ext.h): its answers. What it writes and what it leaves alone, which takes ends that map each
// other's memory, is in tests/unit/paramnet_arena_test.cpp.
#include <viaduct/ext.h>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

TEST(WriteNow, NeedsAViAndAWrite) {
    Pair pair;
    const uint64_t word = 1;
    const VIPX_WRITE write = {0, 0, nullptr, 0, &word, sizeof word};
    EXPECT_EQ(VipxWriteNow(nullptr, &write), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxWriteNow(pair.client.vi, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxWriteNow(pair.client.vi, &write), VIP_NOT_DONE);
}

TEST(QueryMapped, NeedsAViAndAPlaceForTheAnswer) {
    Pair pair;
    void* here = nullptr;
    EXPECT_EQ(VipxQueryMapped(nullptr, 0, 0, 8, &here), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxQueryMapped(pair.client.vi, 0, 0, 8, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxQueryMapped(pair.client.vi, 0, 0, 8, &here), VIP_NOT_DONE);
    EXPECT_EQ(here, nullptr);
}

}  // namespace
}  // namespace viaduct::conformance
