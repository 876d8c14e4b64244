// SPDX-License-Identifier: BSD-2-Clause
// Which descriptors take the fast path, and that one whose memory is unmapped does not.
#include "providers/packet/plain_descriptor.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace viaduct::packet {
namespace {

class PacketPlainDescriptor : public testing::Test {
protected:
    void SetUp() override {
        handle_ = regions_.add({.base = reinterpret_cast<uintptr_t>(memory_), .length = sizeof memory_});
        vi_.regions = &regions_;
        d_.CS.SegCount = 1;
        d_.CS.Length = 100;
        d_.DS[0].Local.Data.Address = memory_ + 8;
        d_.DS[0].Local.Handle = handle_;
        d_.DS[0].Local.Length = 100;
        remember_region(vi_, vi_.send, &d_);
    }
    bool plain() { return is_plain(vi_.send, &d_, &segment_); }

    std::byte memory_[4096];
    RegionTable regions_;
    uint32_t handle_ = 0;
    ViCore vi_;
    VIP_DESCRIPTOR d_ = {};
    SegmentValue segment_ = {};
};

TEST_F(PacketPlainDescriptor, AMessageWithOneSegmentIsAndItsSegmentIsTold) {
    EXPECT_TRUE(plain());
    EXPECT_EQ(segment_.bytes(), memory_ + 8);
    EXPECT_EQ(segment_.length, 100u);
    d_.CS.Control = VIP_CONTROL_IMMEDIATE;
    EXPECT_TRUE(plain());
}

TEST_F(PacketPlainDescriptor, OtherFormsAreNot) {
    for (const VIP_UINT16 count : {0, 2, 3, 65535}) {
        d_.CS.SegCount = count;
        EXPECT_FALSE(plain()) << count;
    }
    d_.CS.SegCount = 1;
    for (const int control :
         {VIP_CONTROL_OP_RDMAWRITE, VIP_CONTROL_OP_RDMAREAD, VIP_CONTROL_QFENCE, 0x8000}) {
        d_.CS.Control = static_cast<VIP_UINT16>(control);
        EXPECT_FALSE(plain()) << control;
    }
    d_.CS.Control = 0;
    d_.DS[0].Local.Length = 0;
    EXPECT_FALSE(plain());
}

TEST_F(PacketPlainDescriptor, MemoryOutsideTheRegionIsNot) {
    d_.DS[0].Local.Data.Address = memory_ + sizeof memory_ - 99;
    EXPECT_FALSE(plain());
    d_.DS[0].Local.Data.Address = memory_ - 1;
    EXPECT_FALSE(plain());
}

TEST_F(PacketPlainDescriptor, MemoryThatWasTakenBackIsNot) {
    Region removed;
    ASSERT_TRUE(regions_.remove(handle_, 0, &removed));
    EXPECT_FALSE(plain());
    remember_region(vi_, vi_.send, &d_);
    EXPECT_FALSE(plain());
}

TEST_F(PacketPlainDescriptor, MemoryOfAnotherTagIsNotRemembered) {
    const uint32_t other =
        regions_.add({.base = reinterpret_cast<uintptr_t>(memory_), .length = sizeof memory_, .ptag = 7});
    vi_.ptag = 8;
    d_.DS[0].Local.Handle = other;
    remember_region(vi_, vi_.send, &d_);
    EXPECT_FALSE(plain());
}

TEST_F(PacketPlainDescriptor, CopiesOfEverySizeAreWhole) {
    std::byte from[300], to[301];
    for (size_t i = 0; i < sizeof from; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    for (uint32_t n = 0; n <= sizeof from; ++n) {
        std::memset(to, 0, sizeof to);
        copy_payload(to, from, n);
        EXPECT_EQ(std::memcmp(to, from, n), 0) << n;
        EXPECT_EQ(to[n], std::byte{0}) << n;
    }
}

}  // namespace
}  // namespace viaduct::packet
