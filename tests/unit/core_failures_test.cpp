// SPDX-License-Identifier: BSD-2-Clause
// The ring of failure records: what is kept, what counts as a repetition, how a line looks, names of codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "core/stats/failures.hpp"
#include "core/text/code_names.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct::stats {
namespace {

class Failures : public ::testing::Test {
protected:
    void SetUp() override { reset_failures(); }
    void TearDown() override { reset_failures(); }

    static void fail(const void* object, const char* text) {
        Failure failure;
        failure.call = "VipPostSend";
        failure.object = object;
        failure.code = VIP_INVALID_PARAMETER;
        failure.text = text;
        failure.cure = "none";
        record_failure(failure);
    }
    static std::string line_of(const void* object) {
        FailureRecord record;
        char line[kFailureLineBytes];
        if (!last_failure(object, &record)) return "";
        write_failure(record, line, sizeof line);
        return line;
    }
    static const void* object(uintptr_t number) { return reinterpret_cast<const void*>(number); }
};

TEST_F(Failures, TheNewestOfAnObjectAndOfAny) {
    EXPECT_EQ(line_of(nullptr), "");
    fail(object(1), "first");
    fail(object(2), "second");
    EXPECT_EQ(line_of(object(1)), "VipPostSend: VIP_INVALID_PARAMETER: first; cure: none");
    EXPECT_EQ(line_of(nullptr), "VipPostSend: VIP_INVALID_PARAMETER: second; cure: none");
    EXPECT_EQ(line_of(object(3)), "");
}

TEST_F(Failures, TheSameInARowIsOneRecord) {
    for (int i = 0; i < 3; ++i) fail(object(1), "again");
    EXPECT_EQ(line_of(object(1)), "VipPostSend: VIP_INVALID_PARAMETER: again; cure: none (3 times)");
}

TEST_F(Failures, TwoThatTakeTurnsAreTwoRecordsAndLeaveTheOthers) {
    fail(object(1), "once");
    for (uint32_t i = 0; i < 2 * kFailureRecords; ++i) {
        fail(object(2), "in turn");
        fail(object(3), "in turn");
    }
    EXPECT_EQ(line_of(object(1)), "VipPostSend: VIP_INVALID_PARAMETER: once; cure: none");
    EXPECT_EQ(line_of(object(2)), "VipPostSend: VIP_INVALID_PARAMETER: in turn; cure: none (64 times)");
    FailureRecord newest;
    ASSERT_TRUE(last_failure(nullptr, &newest));
    EXPECT_EQ(newest.object, 3u);
    fail(object(2), "in turn");
    ASSERT_TRUE(last_failure(nullptr, &newest));
    EXPECT_EQ(newest.object, 2u);
}

TEST_F(Failures, AnotherReasonOfThePeerIsAnotherRecord) {
    Failure failure;
    failure.object = object(1);
    failure.text = "the connection is broken";
    for (const char* said : {"the first reason", "the second reason"}) {
        failure.said = said;
        record_failure(failure);
    }
    FailureRecord newest;
    ASSERT_TRUE(last_failure(object(1), &newest));
    EXPECT_STREQ(newest.said, "the second reason");
    EXPECT_EQ(newest.times, 1u);
}

TEST_F(Failures, TheOldestGoWhenTheRingIsFull) {
    for (uintptr_t i = 1; i <= kFailureRecords + 1; ++i) fail(object(i), "one of many");
    EXPECT_EQ(line_of(object(1)), "");
    EXPECT_NE(line_of(object(2)), "");
    EXPECT_NE(line_of(object(kFailureRecords + 1)), "");
}

TEST_F(Failures, LongTextsAreCutAndEndWithAZeroByte) {
    const std::string text(5000, 'x');
    fail(object(1), text.c_str());
    FailureRecord record;
    ASSERT_TRUE(last_failure(object(1), &record));
    EXPECT_EQ(std::strlen(record.text), sizeof record.text - 1);
    char line[8] = "";
    EXPECT_GT(write_failure(record, line, sizeof line), sizeof line);
    EXPECT_STREQ(line, "VipPost");
}

TEST_F(Failures, WhatWasKeptBeforeTheSegmentMovesIntoIt) {
    fail(object(1), "early");
    const auto ring = std::make_unique<FailureRing>();
    move_failures(ring.get());
    EXPECT_TRUE(failures_are_in_segment());
    fail(object(1), "late");
    EXPECT_EQ(ring->written.load(), 2u);
    EXPECT_STREQ(ring->records[0].text, "early");
    EXPECT_STREQ(ring->records[1].text, "late");
    reset_failures();
    EXPECT_EQ(line_of(object(1)), "");
}

// A ring in the segment's place, which a test can hold as a thread would.
class HeldFailures : public Failures {
protected:
    void SetUp() override {
        Failures::SetUp();
        move_failures(ring.get());
    }
    // Holds the ring until the other thread has looked for a while.
    template <class Work>
    void hold_meanwhile(Work&& work) {
        tests::SleepMark waits;
        ring->busy = static_cast<uint32_t>(::gettid());
        std::thread other([&] {
            waits.set();
            work();
        });
        EXPECT_TRUE(tests::eventually("the other thread sleeps", [&] { return waits.has_slept(); }));
        ring->busy = 0;
        other.join();
    }
    const std::unique_ptr<FailureRing> ring = std::make_unique<FailureRing>();
};

TEST_F(HeldFailures, AWriterWaitsForTheHolder) {
    hold_meanwhile([] { fail(object(1), "kept"); });
    EXPECT_EQ(line_of(object(1)), "VipPostSend: VIP_INVALID_PARAMETER: kept; cure: none");
}

TEST_F(HeldFailures, AReaderWaitsForTheHolder) {
    fail(object(1), "kept");
    std::string line;
    hold_meanwhile([&line] { line = line_of(object(1)); });
    EXPECT_EQ(line, "VipPostSend: VIP_INVALID_PARAMETER: kept; cure: none");
}

TEST_F(HeldFailures, AThreadDoesNotWaitForItself) {
    ring->busy = static_cast<uint32_t>(::gettid());
    fail(object(1), "in a signal handler");
    EXPECT_EQ(ring->written, 0u);
    EXPECT_EQ(ring->busy, static_cast<uint32_t>(::gettid()));
}

TEST_F(HeldFailures, AThreadThatHasEndedHoldsNothing) {
    std::thread([this] { ring->busy = static_cast<uint32_t>(::gettid()); }).join();
    fail(object(1), "kept");
    EXPECT_EQ(line_of(object(1)), "VipPostSend: VIP_INVALID_PARAMETER: kept; cure: none");
    EXPECT_EQ(ring->busy, 0u);
}

TEST(CodeNames, OfEveryCodeAndNoOther) {
    EXPECT_STREQ(name_of_return(VIP_SUCCESS).name, "VIP_SUCCESS");
    EXPECT_STREQ(name_of_return(VIP_ERROR_NOT_SUPPORTED).name, "VIP_ERROR_NOT_SUPPORTED");
    EXPECT_EQ(name_of_return(17).name, nullptr);
    EXPECT_STREQ(name_of_error(VIP_ERROR_POST_DESC).name, "VIP_ERROR_POST_DESC");
    EXPECT_STREQ(name_of_error(VIP_ERROR_CATASTROPHIC).name, "VIP_ERROR_CATASTROPHIC");
    EXPECT_EQ(name_of_error(11).name, nullptr);
}

TEST(CodeNames, BitsOfAStatus) {
    char text[200];
    write_status_names(VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_OP_RECEIVE, text, sizeof text);
    EXPECT_STREQ(text, "VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_OP_RECEIVE");
    EXPECT_GT(write_status_names(VIP_STATUS_ERROR_MASK, text, 10), 10u);
    EXPECT_STREQ(text, "VIP_STATU");
}

}  // namespace
}  // namespace viaduct::stats
