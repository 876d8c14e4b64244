// SPDX-License-Identifier: BSD-2-Clause
// Fault injection behind a port, frame by frame and at times that a test chooses.
#include "providers/packet/faulty_wire.hpp"

#include <gtest/gtest.h>

#include <array>

namespace viaduct::packet {
namespace {

constexpr int64_t kMs = 1'000'000;

class PacketFaultyWire : public testing::Test {
protected:
    void plan(uint32_t link, const char* text) {
        FaultPlan p;
        ASSERT_TRUE(parse_fault_plan(text, &p)) << text;
        wire_.set_plan(link, p);
    }
    // Whether a frame of that link that leaves at that time goes out at once. What is lost is given back.
    bool passes(uint32_t link, int64_t time) {
        void* now[2] = {};
        const int before = keeper_.given_back;
        const uint32_t n = wire_.pass(&frame_, link, bytes_, time, now);
        EXPECT_EQ(keeper_.given_back, before + (n == 0 ? 1 : 0));
        return n != 0;
    }

    struct Keeper final : FrameKeeper {
        void* copy_of(void* frame) override { return frame; }
        void free(void*) override { ++given_back; }
        int given_back = 0;
    };
    Keeper keeper_;
    int frame_ = 0;  // only its address is looked at
    std::array<std::byte, 64> bytes_{};
    FaultyWire wire_{keeper_};
};

TEST_F(PacketFaultyWire, WithoutAPlanEverythingPasses) {
    EXPECT_FALSE(wire_.has_plans());
    EXPECT_TRUE(passes(1, 0));
    EXPECT_EQ(wire_.counters().dropped, 0u);
}

TEST_F(PacketFaultyWire, ALinkThatFlapsIsUpAndDownByTurns) {
    plan(0, "flap_ms=100");
    ASSERT_TRUE(wire_.has_plans());
    for (const int64_t up : {int64_t{0}, 100 * kMs - 1, 200 * kMs, 299 * kMs, 1'000'000 * kMs})
        EXPECT_TRUE(passes(1, up)) << up;
    EXPECT_EQ(wire_.counters().dropped, 0u);
    for (const int64_t down : {100 * kMs, 200 * kMs - 1, 300 * kMs, 1'000'100 * kMs})
        EXPECT_FALSE(passes(1, down)) << down;
    EXPECT_EQ(wire_.counters().dropped, 4u);
    plan(0, "");
    EXPECT_TRUE(passes(1, 100 * kMs)) << "the empty plan ends it";
}

TEST_F(PacketFaultyWire, ALinkWithAPlanOfItsOwnFlapsAlone) {
    plan(7, "flap_ms=10");
    EXPECT_FALSE(passes(7, 10 * kMs));
    EXPECT_TRUE(passes(8, 10 * kMs));
    plan(8, "flap_ms=20");
    EXPECT_TRUE(passes(8, 10 * kMs));
    EXPECT_TRUE(passes(7, 20 * kMs));
    EXPECT_FALSE(passes(8, 20 * kMs));
}

TEST_F(PacketFaultyWire, ALinkThatIsDownStaysSo) {
    plan(0, "linkdown=1,flap_ms=100");
    for (int64_t t = 0; t < 1000 * kMs; t += 50 * kMs) EXPECT_FALSE(passes(1, t)) << t;
}

TEST_F(PacketFaultyWire, FramesOnTheirWayWhenTheLinkGoesDownArrive) {
    plan(0, "flap_ms=1,delay_us=500");
    EXPECT_FALSE(passes(1, 1 * kMs));
    void* now[2] = {};
    EXPECT_EQ(wire_.pass(&frame_, 1, bytes_, kMs - 1, now), 0u);
    EXPECT_EQ(wire_.held_until(), kMs + kMs / 2 - 1);
    EXPECT_EQ(wire_.release(kMs), nullptr);
    EXPECT_EQ(wire_.release(kMs + kMs / 2), &frame_);
}

}  // namespace
}  // namespace viaduct::packet
