// SPDX-License-Identifier: BSD-2-Clause
// When and how the agent asks providers again for their NICs.
#include "kagent/nic_inquiries.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>

#include "kagent/inquiry_times.hpp"
#include "kagent_testing.hpp"
#include "no_descriptors.hpp"
#include "tests/eventually.hpp"

namespace viaduct::kagent {
namespace {

using testing::NoSettings;
using tests::eventually;

constexpr int64_t kMillisecond = 1'000'000;

const NoSettings& no_settings() {
    static const NoSettings none;
    return none;
}

// A provider whose discovery stands still until the test lets it go on.
class Gate {
public:
    void pass() {
        std::unique_lock held(lock_);
        ++inside_;
        changed_.notify_all();
        changed_.wait(held, [&] { return open_; });
        --inside_;
    }
    void set_open(bool open) {
        const std::lock_guard held(lock_);
        open_ = open;
        changed_.notify_all();
    }
    bool is_inside() {
        const std::lock_guard held(lock_);
        return inside_ != 0;
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    int inside_ = 0;
    bool open_ = true;
};

Gate& gate() {
    static Gate& one = *new Gate;
    return one;
}

std::atomic<int> asked{0};

const Provider& blocked() {
    static const Provider p = fake::provider("blocked", [](const Settings&, const Hints&, NicSink& sink) -> Status {
        ++asked;
        gate().pass();
        sink.offer(fake::nic("blocked", 0));
        return Status::ok;
    });
    return p;
}

const Provider& prompt() {
    static const Provider p = fake::provider("fake", fake::discover<2>);
    return p;
}

bool is_readable(int fd) {
    pollfd event{fd, POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
}

class NicInquiriesTest : public ::testing::Test {
protected:
    ~NicInquiriesTest() override {
        gate().set_open(true);
        EXPECT_TRUE(eventually("no inquiry runs", [&] { return !inquiries.busy(); }));
    }
    NicInquiries inquiries;
};

TEST_F(NicInquiriesTest, AnAnswerComesThroughTheDescriptor) {
    ASSERT_TRUE(inquiries.ask(3, prompt(), no_settings()));
    EXPECT_TRUE(eventually("an answer has come", [&] { return is_readable(inquiries.fd()); }));
    const auto answers = inquiries.take();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].provider, 3u);
    EXPECT_TRUE(answers[0].nics.complete);
    EXPECT_EQ(answers[0].nics.offered.size(), 2u);
    EXPECT_EQ(answers[0].nics.rejected.size(), 1u);
    EXPECT_FALSE(is_readable(inquiries.fd()));
    EXPECT_TRUE(inquiries.take().empty());
}

TEST_F(NicInquiriesTest, AProviderThatBlocksStopsNeitherTheCallerNorTheOthers) {
    gate().set_open(false);
    ASSERT_TRUE(inquiries.ask(0, blocked(), no_settings()));
    ASSERT_TRUE(inquiries.ask(1, prompt(), no_settings()));
    EXPECT_TRUE(eventually("the other provider has answered", [&] { return is_readable(inquiries.fd()); }));
    const auto answers = inquiries.take();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].provider, 1u);
    EXPECT_TRUE(inquiries.busy());
    inquiries.await(1);  // a deadline that has passed
    EXPECT_TRUE(inquiries.busy());
    gate().set_open(true);
    inquiries.await(kNever);
    const auto late = inquiries.take();
    ASSERT_EQ(late.size(), 1u);
    EXPECT_EQ(late[0].provider, 0u);
    EXPECT_EQ(late[0].nics.offered.size(), 1u);
}

TEST_F(NicInquiriesTest, AProviderIsAskedOnceMoreWhenSomethingChangesWhileItAnswers) {
    gate().set_open(false);
    const int before = asked.load();
    ASSERT_TRUE(inquiries.ask(0, blocked(), no_settings()));
    ASSERT_TRUE(eventually("the provider is asked", [&] { return gate().is_inside(); }));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(inquiries.ask(0, blocked(), no_settings()));
    EXPECT_EQ(asked.load(), before + 1) << "one thread for one provider";
    gate().set_open(true);
    inquiries.await(kNever);
    EXPECT_EQ(asked.load(), before + 2);
    EXPECT_EQ(inquiries.take().size(), 1u) << "the latest answer counts";
}

TEST(NicInquiriesWithoutDescriptorsTest, BeginAsSoonAsThereIsADescriptor) {
    std::optional<NicInquiries> inquiries;
    {
        const tests::NoDescriptors none;
        inquiries.emplace();
        EXPECT_FALSE(inquiries->ask(0, prompt(), no_settings()));
        EXPECT_EQ(inquiries->fd(), -1);
    }
    ASSERT_TRUE(inquiries->ask(0, prompt(), no_settings()));
    EXPECT_TRUE(eventually("an answer has come", [&] { return is_readable(inquiries->fd()); }));
    EXPECT_EQ(inquiries->take().size(), 1u);
}

TEST(NicAnswerTest, AFailureIsNoListOfAllNics) {
    const auto answer_of = [](auto how) { return ask_for_nics(fake::provider("failing", how), no_settings()); };
    const NicAnswer scarce = answer_of([](const Settings&, const Hints&, NicSink& sink) -> Status {
        sink.offer(fake::nic("failing", 0));
        return Status::out_of_resources;
    });
    EXPECT_FALSE(scarce.complete);
    EXPECT_TRUE(scarce.may_succeed_later);
    EXPECT_EQ(scarce.offered.size(), 1u);
    ASSERT_EQ(scarce.rejected.size(), 1u);
    EXPECT_EQ(scarce.rejected[0].provider, "failing");
    const NicAnswer memory =
        answer_of([](const Settings&, const Hints&, NicSink&) -> Status { throw std::bad_alloc(); });
    EXPECT_TRUE(memory.may_succeed_later);
    const NicAnswer thrown = answer_of([](const Settings&, const Hints&, NicSink&) -> Status { throw 42; });
    EXPECT_FALSE(thrown.complete);
    EXPECT_FALSE(thrown.may_succeed_later);
}

TEST(InquiryTimesTest, ProvidersAreAskedOnceAfterABurstOfReports) {
    InquiryTimes times;
    EXPECT_EQ(times.next(), kNever);
    times.changed(1000 * kMillisecond);
    EXPECT_EQ(times.next(), 1050 * kMillisecond);
    times.changed(1040 * kMillisecond);
    EXPECT_FALSE(times.take(1089 * kMillisecond)) << "the interfaces have not settled";
    EXPECT_TRUE(times.take(1090 * kMillisecond));
    EXPECT_FALSE(times.take(2000 * kMillisecond)) << "once";
    EXPECT_EQ(times.next(), kNever);
}

TEST(InquiryTimesTest, ReportsThatDoNotEndPutTheInquiryOffForABoundedTime) {
    InquiryTimes times;
    for (int64_t now = 0; now < InquiryTimes::kLongestUnrest; now += 10 * kMillisecond) {
        EXPECT_FALSE(times.take(now));
        times.changed(now);
    }
    EXPECT_TRUE(times.take(InquiryTimes::kLongestUnrest));
    times.changed(InquiryTimes::kLongestUnrest);
    EXPECT_EQ(times.next(), InquiryTimes::kLongestUnrest + InquiryTimes::kQuiet) << "the next burst";
}

TEST(InquiryTimesTest, AFailureIsFollowedByInquiriesInGrowingPauses) {
    InquiryTimes times;
    int64_t now = 0;
    for (int64_t pause = InquiryTimes::kFirstPause; pause <= 2 * InquiryTimes::kLongestPause; pause *= 2) {
        times.answered(0, true, now);
        times.answered(1, true, now);
        const int64_t expected = std::min(pause, InquiryTimes::kLongestPause);
        EXPECT_EQ(times.next(), now + expected);
        now += expected;
        EXPECT_TRUE(times.take(now));
        times.asked(true, now);
    }
    times.answered(0, false, now);
    times.answered(1, false, now);
    times.answered(1, true, now);
    EXPECT_EQ(times.next(), now + InquiryTimes::kFirstPause);
    times.changed(now);
    EXPECT_TRUE(times.take(now + InquiryTimes::kQuiet)) << "a change is soon asked for";
    EXPECT_EQ(times.next(), kNever);
}

TEST(InquiryTimesTest, TheGoodAnswersOfAProviderDoNotShortenThePausesOfAnother) {
    InquiryTimes times;
    int64_t now = 0;
    for (int64_t pause = InquiryTimes::kFirstPause; pause <= InquiryTimes::kLongestPause; pause *= 2) {
        times.answered(0, true, now);
        times.answered(1, false, now + kMillisecond);
        EXPECT_EQ(times.next(), now + pause);
        now += pause;
        EXPECT_TRUE(times.take(now));
    }
}

TEST(InquiryTimesTest, AProviderThatDoesNotAnswerDoesNotLengthenThePausesOfAnother) {
    InquiryTimes times;  // provider 1 does not answer
    for (int64_t now = 0; now < 100 * InquiryTimes::kFirstPause; now += 10 * InquiryTimes::kFirstPause) {
        times.answered(0, true, now);
        EXPECT_EQ(times.next(), now + InquiryTimes::kFirstPause);
        EXPECT_TRUE(times.take(times.next()));
        times.asked(true, now);
        times.answered(0, false, now);
        times.vanished(now);
        EXPECT_EQ(times.next(), now + InquiryTimes::kFirstPause);
        EXPECT_TRUE(times.take(times.next()));
    }
}

TEST(InquiryTimesTest, AVanishedNicIsAskedForASecondLaterWhateverElseFails) {
    InquiryTimes times;
    int64_t now = 0;
    for (int i = 0; i < 10; ++i) {
        times.answered(0, true, now);
        now = times.next();
        EXPECT_TRUE(times.take(now));
    }
    times.answered(0, true, now);
    EXPECT_EQ(times.next(), now + InquiryTimes::kLongestPause);
    times.vanished(now + kMillisecond);
    times.vanished(now + 2 * kMillisecond);
    EXPECT_EQ(times.next(), now + kMillisecond + InquiryTimes::kFirstPause);
}

TEST(InquiryTimesTest, ProvidersThatCouldNotBeAskedAreAskedLater) {
    InquiryTimes times;
    times.asked(false, 0);
    EXPECT_EQ(times.next(), InquiryTimes::kFirstPause);
    EXPECT_TRUE(times.take(times.next()));
    times.answered(0, false, 0);
    times.asked(false, 0);
    EXPECT_EQ(times.next(), 2 * InquiryTimes::kFirstPause) << "one that answers makes no thread";
    EXPECT_TRUE(times.take(times.next()));
    times.asked(true, 0);
    EXPECT_EQ(times.next(), kNever);
}

}  // namespace
}  // namespace viaduct::kagent
