// SPDX-License-Identifier: BSD-2-Clause
// Copies of the data path: every length and alignment, nothing beside the target, the last bytes last.
#include "core/copy/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace viaduct {
namespace {

constexpr std::byte kGuard{0xEE};

std::vector<std::byte> pattern(size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
    return data;
}

// Copies `n` bytes to `offset` within a guarded buffer and says whether exactly they were written.
template <class Copy>
bool exact(size_t n, size_t from_offset, size_t to_offset, Copy&& copy) {
    const std::vector<std::byte> source = pattern(n + 64);
    alignas(64) static std::byte target[8192];
    std::memset(target, static_cast<int>(kGuard), n + 192);
    copy(target + 64 + to_offset, source.data() + from_offset, n);
    for (size_t i = 0; i < 64 + to_offset; ++i) {
        if (target[i] != kGuard) return false;
    }
    for (size_t i = 64 + to_offset + n; i < n + 192; ++i) {
        if (target[i] != kGuard) return false;
    }
    return std::memcmp(target + 64 + to_offset, source.data() + from_offset, n) == 0;
}

TEST(Copy, SmallOnesOfEveryLength) {
    for (uint32_t n = 0; n <= 128; ++n) {
        for (size_t offset = 0; offset < 16; ++offset) {
            EXPECT_TRUE(exact(n, offset, 15 - offset,
                              [](std::byte* to, const std::byte* from, size_t bytes) {
                                  copy_small(to, from, static_cast<uint32_t>(bytes));
                              }))
                << n << " bytes";
        }
    }
}

TEST(Copy, RisingOnesOfEveryLengthAndAlignment) {
    for (size_t n = 0; n <= 300; ++n) {
        for (size_t to = 0; to < 64; to += n < 80 ? 1 : 7)
            EXPECT_TRUE(exact(n, 3, to, copy_rising)) << n << " to " << to;
    }
    for (const size_t n : {1000u, 4096u, 7777u}) EXPECT_TRUE(exact(n, 1, 5, copy_rising)) << n;
}

TEST(Copy, KnowsWhatLiesBeforeTheLastLine) {
    EXPECT_EQ(before_last_line(0, 0), 0u);
    EXPECT_EQ(before_last_line(64, 1), 0u);
    EXPECT_EQ(before_last_line(64, 64), 0u);
    EXPECT_EQ(before_last_line(64, 65), 64u);
    EXPECT_EQ(before_last_line(60, 8), 4u);
    EXPECT_EQ(before_last_line(1, 1000), 959u);
}

class Segments : public ::testing::Test {
protected:
    // A descriptor whose segments lie in `memory_`, in order, with holes between them.
    VIP_DESCRIPTOR* descriptor(std::vector<uint32_t> lengths, uint16_t operation = VIP_CONTROL_OP_SENDRECV) {
        std::memset(storage_, 0, sizeof storage_);
        auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(storage_);
        d->CS.Control = operation;
        const size_t first = operation == VIP_CONTROL_OP_SENDRECV ? 0 : 1;
        size_t at = 0;
        for (size_t i = 0; i < lengths.size(); ++i) {
            auto& s = const_cast<VIP_DATA_SEGMENT&>(segments_of(d)[first + i].Local);
            s.Data.Address = memory_ + at;
            s.Length = lengths[i];
            at += lengths[i] + 16;
        }
        d->CS.SegCount = static_cast<VIP_UINT16>(first + lengths.size());
        return d;
    }

    alignas(64) std::byte memory_[4096] = {};
    alignas(64) std::byte storage_[64 + 16 * 64] = {};
};

TEST_F(Segments, AreScatteredAndGatheredInPieces) {
    for (const uint16_t operation : {VIP_CONTROL_OP_SENDRECV, VIP_CONTROL_OP_RDMAREAD}) {
        const VIP_DESCRIPTOR* d = descriptor({10, 0, 1, 100, 0, 39}, operation);
        const std::vector<std::byte> message = pattern(150);
        for (const uint32_t piece : {1u, 7u, 48u, 150u}) {
            std::memset(memory_, static_cast<int>(kGuard), sizeof memory_);
            SegmentCursor to;
            to.begin(d, 150);
            for (uint32_t done = 0; done < 150; done += piece) {
                const uint32_t n = std::min(piece, 150 - done);
                ASSERT_EQ(scatter(to, message.data() + done, n), n);
            }
            EXPECT_EQ(scatter(to, message.data(), 1), 0u) << "used up";
            EXPECT_EQ(memory_[10], kGuard) << "the hole behind the first segment";

            SegmentCursor from;
            from.begin(d, 150);
            std::vector<std::byte> back(150);
            for (uint32_t done = 0; done < 150; done += piece) {
                const uint32_t n = std::min(piece, 150 - done);
                ASSERT_EQ(gather(from, back.data() + done, n), n);
            }
            EXPECT_EQ(back, message);
        }
    }
}

TEST_F(Segments, AreNotUsedBeyondTheMessage) {  // unused tail untouched: spec/descriptors 2.2 rule 4
    const VIP_DESCRIPTOR* d = descriptor({10, 10});
    std::memset(memory_, static_cast<int>(kGuard), sizeof memory_);
    SegmentCursor cursor;
    cursor.begin(d, 12);
    const std::vector<std::byte> message = pattern(100);
    EXPECT_EQ(scatter(cursor, message.data(), 100), 12u);
    EXPECT_EQ(memory_[26 + 2], kGuard);
}

TEST_F(Segments, MayBeNone) {
    SegmentCursor cursor;
    cursor.begin(descriptor({}), 0);
    std::byte nothing{};
    EXPECT_EQ(gather(cursor, &nothing, 1), 0u);
    uint32_t n = 0;
    EXPECT_EQ(cursor.next(100, &n), nullptr);
}

#ifndef VIADUCT_TSAN  // the watcher reads memory that is being written, as programs of the time do
// spec/compat T10, T11: a program polls the last bytes, at any offset, and then finds all others in place.
TEST(CopyStress, AReaderOfTheLastBytesSeesAll) {
    // On one processor the other thread gets it after so many looks, not at the end of a time slice.
    const auto spin_until = [](auto condition) {
        for (uint32_t looks = 1; !condition(); ++looks) {
            if (looks % 10'000 == 0) std::this_thread::yield();
        }
    };
    for (const size_t n : {5u, 8u, 64u, 100u, 260u, 4100u, 65472u}) {
        constexpr uint32_t kRounds = 3000;
        std::vector<std::byte> source(n), target(n + 64);
        std::byte* to = target.data() + 3;
        std::atomic<uint32_t> taken{0};
        uint32_t early = 0;
        std::thread watcher([&] {
            for (uint32_t round = 1; round <= kRounds; ++round) {
                const auto mark = static_cast<std::byte>(round);
                const volatile std::byte* last = to + n - 1;
                spin_until([&] { return *last == mark; });
                std::atomic_thread_fence(std::memory_order_acquire);
                for (size_t i = 0; i < n; i += i + 16 < n ? 16 : 1) {
                    if (static_cast<const volatile std::byte*>(to)[i] != mark) ++early;
                }
                taken.store(round, std::memory_order_release);
            }
        });
        for (uint32_t round = 1; round <= kRounds; ++round) {
            std::memset(source.data(), static_cast<int>(round & 0xFF), n);
            copy_rising(to, source.data(), n);
            spin_until([&] { return taken.load(std::memory_order_acquire) == round; });
        }
        watcher.join();
        EXPECT_EQ(early, 0u) << n << " bytes";
    }
}
#endif

}  // namespace
}  // namespace viaduct
