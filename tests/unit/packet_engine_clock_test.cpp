// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/engine_clock.hpp"

#include <gtest/gtest.h>

#include "tests/eventually.hpp"

namespace viaduct::packet {
namespace {

TEST(PacketEngineClock, IsNeverMuchBehindAndNeverGoesBack) {
    const tests::SystemReaders system;
    EngineClock clock;
    int64_t last = 0;
    for (int i = 0; i < 100'000; ++i) {
        const int64_t before = system.wall_ns(), told = clock.now(), after = system.wall_ns();
        ASSERT_GE(told, last);
        ASSERT_GE(told, before - 5'000);
        ASSERT_LE(told, after);
        last = told;
    }
}

}  // namespace
}  // namespace viaduct::packet
