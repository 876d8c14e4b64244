// SPDX-License-Identifier: BSD-2-Clause
// Comparing words where they lie.
#include "core/sync/atomic_equals.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

template <class Word>
void expect_every_bit_to_count(Word value) {
    std::atomic<Word> word{value};
    EXPECT_TRUE(atomic_equals(word, value));
    EXPECT_TRUE(atomic_equals_acquire(word, value));
    for (unsigned bit = 0; bit < sizeof(Word) * 8; ++bit) {
        word.store(value ^ Word{1} << bit);
        EXPECT_FALSE(atomic_equals(word, value)) << bit;
        EXPECT_FALSE(atomic_equals_acquire(word, value)) << bit;
    }
}

TEST(Holds, ComparesEveryBit) {
    for (const uint32_t value : {0u, 1u, 0x80000000u, 0xFFFFFFFFu}) expect_every_bit_to_count(value);
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{0xFFFFFFFF}, uint64_t{1} << 32,
                                 uint64_t{1} << 63, UINT64_MAX})
        expect_every_bit_to_count(value);
}

TEST(Holds, ComparesTwoNeighboursAtOnce) {
    struct alignas(8) {
        std::atomic<uint32_t> first{5}, second{7};
    } pair;
    EXPECT_TRUE(atomic_pair_equals_acquire(pair.first, pair.second, uint64_t{7} << 32 | 5));
    EXPECT_FALSE(atomic_pair_equals_acquire(pair.first, pair.second, uint64_t{5} << 32 | 7));
    pair.second.store(8);
    EXPECT_FALSE(atomic_pair_equals_acquire(pair.first, pair.second, uint64_t{7} << 32 | 5));
    pair.first.store(4);
    EXPECT_FALSE(atomic_pair_equals_acquire(pair.first, pair.second, uint64_t{8} << 32 | 5));
}

}  // namespace
}  // namespace viaduct
