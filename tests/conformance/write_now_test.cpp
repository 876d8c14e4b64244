// SPDX-License-Identifier: BSD-2-Clause
// VipxWriteNow (viaduct/ext.h): what it writes is there when it returns; what it may not write it leaves alone.
#include <viaduct/ext.h>

#include <cstring>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

// Memory of the server, and a posted write into it by the client: from then on it may be written to at once.
class Area {
public:
    static constexpr std::size_t kBytes = 4096;

    explicit Area(Pair& pair) : nic_(pair.server.nic) {
        VIP_MEM_ATTRIBUTES writable{pair.server.ptag, VIP_TRUE, VIP_FALSE};
        VIP_PVOID memory = nullptr;
        require(VipxAllocMemory(nic_, kBytes, 0, &writable, &memory, &handle), "VipxAllocMemory");
        base = static_cast<char*>(memory);
    }
    ~Area() { VipxFreeMemory(nic_, base, handle); }
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;

    void open(Pair& pair) const {
        VIP_DESCRIPTOR* d = pair.client.descriptor();
        fill(d, VIP_CONTROL_OP_RDMAWRITE, {pair.client.piece(pair.client.buffer(8, 'p'), 8)}, Target{base, handle});
        require(pair.client.post_send(d), "VipPostSend");
        EXPECT_EQ(reap_send(pair.client.vi).descriptor, d);
    }
    VIPX_WRITE at(std::size_t offset, const void* first, std::size_t first_bytes, const void* last,
                  std::size_t last_bytes) const {
        return {reinterpret_cast<VIP_UINT64>(base + offset), handle, first, first_bytes, last, last_bytes};
    }

    char* base = nullptr;
    VIP_MEM_HANDLE handle = 0;

private:
    VIP_NIC_HANDLE nic_;
};

// Whether this NIC has such writes at all.
bool writes_now() {
    Pair pair;
    const Area area(pair);
    area.open(pair);
    const uint64_t word = 1;
    const VIPX_WRITE write = area.at(0, nullptr, 0, &word, sizeof word);
    return VipxWriteNow(pair.client.vi, &write) == VIP_SUCCESS;
}

#define NEEDS_WRITES_NOW() \
    if (!writes_now()) GTEST_SKIP() << "this NIC has no writes at once"

TEST(WriteNow, PutsBothPiecesThere) {
    NEEDS_WRITES_NOW();
    Pair pair;
    const Area area(pair);
    area.open(pair);
    char first[1500];
    uint64_t last[16];
    for (std::size_t n : {0u, 8u, 64u, 200u, 1024u, 1496u}) {
        for (std::size_t words : {1u, 7u, 8u, 15u, 16u}) {
            std::memset(area.base, 0, Area::kBytes);
            std::memset(first, static_cast<int>('a' + n % 20), sizeof first);
            for (std::size_t i = 0; i < 16; ++i) last[i] = n + i + 1;
            const VIPX_WRITE write = area.at(64, first, n, last, words * 8);
            ASSERT_EQ(VipxWriteNow(pair.client.vi, &write), VIP_SUCCESS);
            EXPECT_EQ(std::memcmp(area.base + 64, first, n), 0);
            EXPECT_EQ(std::memcmp(area.base + 64 + n, last, words * 8), 0);
            EXPECT_EQ(area.base[63], 0);
            EXPECT_EQ(area.base[64 + n + words * 8], 0);
        }
    }
}

TEST(WriteNow, LeavesAloneWhatItMayNotWrite) {
    NEEDS_WRITES_NOW();
    Pair pair;
    const Area area(pair);
    const uint64_t words[17] = {};
    std::memset(area.base, 'x', Area::kBytes);
    const auto refused = [&](const VIPX_WRITE& write) { return VipxWriteNow(pair.client.vi, &write) == VIP_NOT_DONE; };
    EXPECT_TRUE(refused(area.at(0, nullptr, 0, words, 8)));  // nothing has been posted to it
    area.open(pair);
    EXPECT_TRUE(refused(area.at(Area::kBytes, nullptr, 0, words, 8)));
    EXPECT_TRUE(refused(area.at(Area::kBytes - 8, words, 8, words, 8)));
    EXPECT_TRUE(refused(area.at(0, nullptr, 0, words, 17 * 8)));
    EXPECT_TRUE(refused(area.at(0, words, ~VIP_ULONG{0} - 7, words, 8)));
    VIPX_WRITE below = area.at(0, nullptr, 0, words, 8);
    below.RemoteAddress -= 8;
    EXPECT_TRUE(refused(below));
    VIPX_WRITE other = area.at(0, nullptr, 0, words, 8);
    other.RemoteHandle ^= 1;
    EXPECT_TRUE(refused(other));
    EXPECT_EQ(area.base[8], 'x');
    EXPECT_EQ(area.base[Area::kBytes - 1], 'x');
}

TEST(WriteNow, EndsWithTheRegionAndWithTheConnection) {
    NEEDS_WRITES_NOW();
    Pair pair;
    const uint64_t word = 1;
    VIPX_WRITE late;
    {
        const Area area(pair);
        area.open(pair);
        late = area.at(0, nullptr, 0, &word, sizeof word);
        EXPECT_EQ(VipxWriteNow(pair.client.vi, &late), VIP_SUCCESS);
    }
    EXPECT_EQ(VipxWriteNow(pair.client.vi, &late), VIP_NOT_DONE);
    const Area area(pair);
    area.open(pair);
    late = area.at(0, nullptr, 0, &word, sizeof word);
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    area.base[0] = 'x';
    EXPECT_EQ(VipxWriteNow(pair.client.vi, &late), VIP_NOT_DONE);
    EXPECT_EQ(area.base[0], 'x');
}

TEST(WriteNow, NeedsAViAndAWrite) {
    Pair pair;
    const uint64_t word = 1;
    const VIPX_WRITE write = {0, 0, nullptr, 0, &word, sizeof word};
    EXPECT_EQ(VipxWriteNow(nullptr, &write), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxWriteNow(pair.client.vi, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxWriteNow(pair.client.vi, &write), VIP_NOT_DONE);
}

}  // namespace
}  // namespace viaduct::conformance
