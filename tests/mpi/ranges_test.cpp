// SPDX-License-Identifier: BSD-2-Clause
// The list of what a process has attached, as another one reads it; here both are this process.
#include "mpi-adi/engine/rma/ranges.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace viaduct::mpi::rma {
namespace {

using Result = ForeignMemory::Result;

class RangesFetch : public testing::Test {
protected:
    void SetUp() override {
        if (own_.probe() != Result::ok) GTEST_SKIP() << "the system forbids process_vm_readv";
        const RangesChange change(&card_, list_);
        ASSERT_TRUE(list_.add(memory_, 16));
        ASSERT_TRUE(list_.add(memory_ + 32, 16));
    }

    static ForeignMemory with_wrong_mark() {
        MemoryMark mark = own_memory_mark();
        mark.value += 2;
        return {::getpid(), mark};
    }

    const ForeignMemory own_{::getpid(), own_memory_mark()};
    char memory_[64] = {};
    RangesCard card_;
    Ranges list_;
    Ranges copy_;
};

TEST_F(RangesFetch, IsCurrentUntilTheOwnerChangesIt) {
    EXPECT_FALSE(copy_.is_current(card_));
    ASSERT_EQ(copy_.fetch(card_, own_), Result::ok);
    EXPECT_TRUE(copy_.is_current(card_));
    EXPECT_TRUE(copy_.holds(memory_ + 32, 16));
    EXPECT_FALSE(copy_.holds(memory_, 32));
    { const RangesChange change(&card_, list_); }
    EXPECT_FALSE(copy_.is_current(card_));
}

TEST_F(RangesFetch, OfAnotherProgramIsNotCurrent) {
    EXPECT_EQ(copy_.fetch(card_, with_wrong_mark()), Result::ended);
    EXPECT_FALSE(copy_.is_current(card_));
    EXPECT_EQ(copy_.fetch(card_, own_), Result::ok);
    EXPECT_TRUE(copy_.is_current(card_));
}

TEST_F(RangesFetch, ThatFailsLeavesNoOldVersion) {
    ASSERT_EQ(copy_.fetch(card_, own_), Result::ok);
    EXPECT_EQ(copy_.fetch(card_, with_wrong_mark()), Result::ended);
    EXPECT_FALSE(copy_.is_current(card_));
}

TEST_F(RangesFetch, OfMemoryThatIsNotThereIsUnreached) {
    card_.address = 4096;
    EXPECT_EQ(copy_.fetch(card_, own_), Result::unreached);
    EXPECT_FALSE(copy_.is_current(card_));
}

TEST_F(RangesFetch, OfMoreRangesThanThereCanBeEnds) {
    card_.count = (uint64_t{1} << 24) + 1;
    EXPECT_EQ(copy_.fetch(card_, own_), Result::unreached);
    EXPECT_FALSE(copy_.is_current(card_));
}

TEST_F(RangesFetch, ThatMeetsAChangeEndsWithTheOwner) {
    card_.version = 3;
    EXPECT_EQ(copy_.fetch(card_, with_wrong_mark()), Result::ended);
    EXPECT_FALSE(copy_.is_current(card_));
}

}  // namespace
}  // namespace viaduct::mpi::rma
