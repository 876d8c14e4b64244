// SPDX-License-Identifier: BSD-2-Clause
// The layout of vipl.h as the library itself is compiled: what binary clients and the wire rely on. The full
// table, in every language mode, is tests/header/layout.c.
#include <gtest/gtest.h>
#include <vipl.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

namespace {

static_assert(sizeof(VIP_DESCRIPTOR) == 64 && alignof(VIP_DESCRIPTOR) == alignof(void*));
static_assert(std::is_trivial_v<VIP_DESCRIPTOR> && std::is_standard_layout_v<VIP_DESCRIPTOR>);
static_assert(std::is_same_v<VIP_ULONG, unsigned long> && sizeof(VIP_MEM_HANDLE) == 4);
static_assert(sizeof(VIP_NIC_ATTRIBUTES) == 200 && sizeof(VIP_VI_ATTRIBUTES) == 40);
static_assert(sizeof(VIP_MEM_ATTRIBUTES) == 16 && sizeof(VIP_ERROR_DESCRIPTOR) == 48);
static_assert(offsetof(VIP_NET_ADDRESS, HostAddress) == 4);

// Writes one field through one dialect and reports which bytes of the descriptor changed.
template <typename Write>
std::vector<std::size_t> bytes_changed_by(Write write) {
    unsigned char raw[sizeof(VIP_DESCRIPTOR)] = {};
    auto* descriptor = new (raw) VIP_DESCRIPTOR;
    std::memset(raw, 0, sizeof raw);
    write(*descriptor);
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < sizeof raw; ++i)
        if (raw[i] != 0) changed.push_back(i);
    return changed;
}

std::vector<std::size_t> range(std::size_t first, std::size_t count) {
    std::vector<std::size_t> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = first + i;
    return bytes;
}

TEST(ViplLayout, BothDialectsWriteTheSameBytesOfTheControlSegment) {
    struct Field {
        const char* name;
        std::vector<std::size_t> bytes, by_cs, by_control;
    };
    const Field fields[] = {
        {"Next", range(0, 8), bytes_changed_by([](auto& d) { d.CS.Next.AddressBits = ~VIP_UINT64{0}; }),
         bytes_changed_by([](auto& d) { d.Control.Next.AddressBits = ~VIP_UINT64{0}; })},
        {"NextHandle", range(8, 4), bytes_changed_by([](auto& d) { d.CS.NextHandle = ~0U; }),
         bytes_changed_by([](auto& d) { d.Control.NextHandle = ~0U; })},
        {"SegCount", range(12, 2), bytes_changed_by([](auto& d) { d.CS.SegCount = 0xFFFF; }),
         bytes_changed_by([](auto& d) { d.Control.SegCount = 0xFFFF; })},
        {"Control", range(14, 2), bytes_changed_by([](auto& d) { d.CS.Control = 0xFFFF; }),
         bytes_changed_by([](auto& d) { d.Control.Control = 0xFFFF; })},
        {"Reserved", range(16, 4), bytes_changed_by([](auto& d) { d.CS.Reserved = ~0U; }),
         bytes_changed_by([](auto& d) { d.Control.Reserved = ~0U; })},
        {"ImmediateData", range(20, 4), bytes_changed_by([](auto& d) { d.CS.ImmediateData = ~0U; }),
         bytes_changed_by([](auto& d) { d.Control.ImmediateData = ~0U; })},
        {"Length", range(24, 4), bytes_changed_by([](auto& d) { d.CS.Length = ~0U; }),
         bytes_changed_by([](auto& d) { d.Control.Length = ~0U; })},
        {"Status", range(28, 4), bytes_changed_by([](auto& d) { d.CS.Status = ~0U; }),
         bytes_changed_by([](auto& d) { d.Control.Status = ~0U; })},
    };
    for (const Field& field : fields) {
        EXPECT_EQ(field.by_cs, field.bytes) << field.name;
        EXPECT_EQ(field.by_control, field.bytes) << field.name;
    }
}

TEST(ViplLayout, BothDialectsWriteTheSameBytesOfTheSegments) {
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t at = 32 + 16 * i;
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Local.Data.AddressBits = ~VIP_UINT64{0}; }),
                  range(at, 8));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Remote.Data.AddressBits = ~VIP_UINT64{0}; }),
                  range(at, 8));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.Data[i].Data.AddressBits = ~VIP_UINT64{0}; }),
                  range(at, 8));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Local.Handle = ~0U; }), range(at + 8, 4));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Remote.Handle = ~0U; }), range(at + 8, 4));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.Data[i].Handle = ~0U; }), range(at + 8, 4));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Local.Length = ~0U; }), range(at + 12, 4));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.DS[i].Remote.Reserved = ~0U; }), range(at + 12, 4));
        EXPECT_EQ(bytes_changed_by([i](auto& d) { d.Data[i].Length = ~0U; }), range(at + 12, 4));
    }
}

TEST(ViplLayout, StatusMasksShareTheWordWithoutOverlap) {
    const VIP_UINT32 parts[] = {VIP_STATUS_DONE, VIP_STATUS_ERROR_MASK, VIP_STATUS_OP_MASK,
                                VIP_STATUS_IMMEDIATE, VIP_STATUS_RESERVED};
    VIP_UINT32 seen = 0;
    for (VIP_UINT32 part : parts) {
        EXPECT_EQ(seen & part, 0U);
        seen |= part;
    }
    EXPECT_EQ(seen, 0xFFFFFFFFU);
}

}  // namespace
