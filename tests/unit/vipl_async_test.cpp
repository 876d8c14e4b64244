// SPDX-License-Identifier: BSD-2-Clause
// Delays and suppression of asynchronous errors, with time as an argument.
#include <gtest/gtest.h>

#include "vipl/dispatcher.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {
namespace {

AsyncError error_due(int64_t due, VIP_ERROR_CODE code = VIP_ERROR_POST_DESC) {
    AsyncError error;
    error.due = due;
    error.record.ErrorCode = code;
    return error;
}

TEST(ErrorQueueTest, GivesNothingBeforeItIsDue) {
    ErrorQueue queue;
    AsyncError got;
    queue.push(error_due(250));
    EXPECT_EQ(queue.next_due(), 250);
    EXPECT_FALSE(queue.pop_due(249, &got));
    EXPECT_TRUE(queue.pop_due(250, &got));
    EXPECT_FALSE(queue.pop_due(1000, &got));
    EXPECT_EQ(queue.next_due(), INT64_MAX);
}

TEST(ErrorQueueTest, ALateErrorDoesNotHoldBackAnEarlierOne) {
    ErrorQueue queue;
    AsyncError got;
    queue.push(error_due(250, VIP_ERROR_CONN_LOST));
    queue.push(error_due(10, VIP_ERROR_POST_DESC));
    ASSERT_TRUE(queue.pop_due(20, &got));
    EXPECT_EQ(got.record.ErrorCode, VIP_ERROR_POST_DESC);
    EXPECT_FALSE(queue.pop_due(20, &got));
}

TEST(ErrorQueueTest, ErrorsOfOneMomentKeepTheirOrder) {
    ErrorQueue queue;
    AsyncError got;
    for (const VIP_ERROR_CODE code : {VIP_ERROR_RDMAW_PROT, VIP_ERROR_RECVQ_EMPTY, VIP_ERROR_VI_OVERRUN})
        queue.push(error_due(5, code));
    for (const VIP_ERROR_CODE code : {VIP_ERROR_RDMAW_PROT, VIP_ERROR_RECVQ_EMPTY, VIP_ERROR_VI_OVERRUN}) {
        ASSERT_TRUE(queue.pop_due(5, &got));
        EXPECT_EQ(got.record.ErrorCode, code);
    }
}

// A peer whose writes are refused, one after another, faster than the handler hears of it.
TEST(ErrorQueueTest, AFloodTakesLittleMemoryAndHidesNothingElse) {
    constexpr size_t kFlood = 20 * ErrorQueue::kMany;
    ErrorQueue queue;
    size_t pushed = 0;
    for (size_t i = 0; i < kFlood; ++i)
        pushed += queue.push(error_due(5, VIP_ERROR_RDMAW_PROT)) == ErrorQueue::Pushed::yes;
    EXPECT_EQ(pushed, ErrorQueue::kMany);
    EXPECT_EQ(queue.size(), ErrorQueue::kMany);
    EXPECT_EQ(queue.push(error_due(5, VIP_ERROR_CONN_LOST)), ErrorQueue::Pushed::yes);
    AsyncError of_another_vi = error_due(5, VIP_ERROR_RDMAW_PROT);
    of_another_vi.record.ViHandle = &queue;
    EXPECT_EQ(queue.push(of_another_vi), ErrorQueue::Pushed::yes);
    EXPECT_EQ(queue.push(of_another_vi), ErrorQueue::Pushed::is_there_already);
    AsyncError got;
    for (size_t i = 0; i < ErrorQueue::kMany; ++i) {
        ASSERT_TRUE(queue.pop_due(5, &got));
        ASSERT_EQ(got.record.ErrorCode, VIP_ERROR_RDMAW_PROT);
        ASSERT_EQ(got.record.ViHandle, nullptr);
    }
    ASSERT_TRUE(queue.pop_due(5, &got));
    EXPECT_EQ(got.record.ErrorCode, VIP_ERROR_CONN_LOST);
    ASSERT_TRUE(queue.pop_due(5, &got));
    EXPECT_EQ(got.record.ViHandle, of_another_vi.record.ViHandle);
    EXPECT_FALSE(queue.pop_due(5, &got));
    EXPECT_EQ(queue.push(of_another_vi), ErrorQueue::Pushed::yes) << "it may be told again";
}

AsyncError end_of_peer(int64_t now) {
    AsyncError error = error_due(now + 250, VIP_ERROR_CONN_LOST);
    error.latest = now + 750;
    error.only_in_this_life = true;
    return error;
}

TEST(ErrorQueueTest, TheEndsOfPeersWaitForTheLastOfThem) {
    ErrorQueue queue;
    AsyncError got;
    queue.push(end_of_peer(0));
    queue.push(end_of_peer(200));
    EXPECT_FALSE(queue.pop_due(449, &got));
    EXPECT_TRUE(queue.pop_due(450, &got));
    EXPECT_TRUE(queue.pop_due(450, &got));
}

TEST(ErrorQueueTest, TheEndOfAPeerDoesNotWaitForEver) {
    ErrorQueue queue;
    for (int64_t now = 0; now < 2000; now += 100) queue.push(end_of_peer(now));
    EXPECT_EQ(queue.next_due(), 750);
}

TEST(ErrorQueueTest, OtherErrorsDoNotWaitForTheEndsOfPeers) {
    ErrorQueue queue;
    AsyncError got;
    queue.push(error_due(10, VIP_ERROR_RDMAW_PROT));
    queue.push(end_of_peer(5));
    ASSERT_TRUE(queue.pop_due(10, &got));
    EXPECT_EQ(got.record.ErrorCode, VIP_ERROR_RDMAW_PROT);
}

TEST(AsyncErrorTest, AnErrorOfTheNicIsAlwaysWanted) { EXPECT_TRUE(still_wanted(error_due(0))); }

TEST(AsyncErrorTest, AnErrorOfAViIsWantedWhileTheViExists) {
    Vi vi;
    vi.handle.store(0x1002);
    AsyncError empty = error_due(0, VIP_ERROR_RECVQ_EMPTY);
    empty.vi = &vi;
    empty.record.ViHandle = vi.public_handle();
    empty.life = vi.life.load();
    EXPECT_TRUE(still_wanted(empty));
    vi.life.fetch_add(1);  // VipDisconnect
    EXPECT_TRUE(still_wanted(empty));
    vi.handle.store(0x2002);  // destroyed, and its memory used again
    EXPECT_FALSE(still_wanted(empty));
    vi.handle.store(0);  // being destroyed
    EXPECT_FALSE(still_wanted(empty));
    empty.record.ViHandle = nullptr;  // and it came up in that moment
    EXPECT_FALSE(still_wanted(empty));
}

TEST(AsyncErrorTest, ALostConnectionIsToldOnlyInTheLifeThatEnded) {
    Vi vi;
    vi.handle.store(0x1002);
    AsyncError lost = error_due(0, VIP_ERROR_CONN_LOST);
    lost.vi = &vi;
    lost.record.ViHandle = vi.public_handle();
    lost.life = vi.life.load();
    lost.only_in_this_life = true;
    EXPECT_TRUE(still_wanted(lost));

    vi.life.fetch_add(1);  // VipDisconnect
    EXPECT_FALSE(still_wanted(lost));
    vi.life.fetch_sub(1);
    EXPECT_TRUE(still_wanted(lost));
    vi.handle.store(0x2002);  // destroyed, and its memory used again
    EXPECT_FALSE(still_wanted(lost));
}

}  // namespace
}  // namespace viaduct::vipl
