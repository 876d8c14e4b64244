// SPDX-License-Identifier: BSD-2-Clause
// Polling groups, doorbells and sleeping.
#include "paramnet_fixture.hpp"

#include <fcntl.h>

#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct::paramnet::test {
namespace {

// One context with many VIs whose peers are VIs of another context.
struct Star {
    explicit Star(uint32_t count, const std::function<Group*(uint32_t)>& group_of = nullptr)
        : nic_hub(matcher), nic_rays(matcher) {
        for (uint32_t i = 0; i < count; ++i) {
            Group* group = group_of ? group_of(i) : nullptr;
            hub.push_back(std::make_unique<TestVi>(nic_hub, kLevel, 4096, group, group));
            rays.push_back(std::make_unique<TestVi>(nic_rays, kLevel, 4096));
            for (int k = 0; k < 8; ++k) hub.back()->receive(hub.back()->data(), 64);
            connect(*hub.back(), *rays.back());
        }
    }
    uint32_t completed(uint32_t i) const { return hub[i]->core.recv.completed; }
    Matcher matcher;
    TestNic nic_hub, nic_rays;
    std::vector<std::unique_ptr<TestVi>> hub, rays;
};

TEST(Groups, FindMessagesOfManyVis) {
    Star star(100);
    for (uint32_t round = 1; round <= 4; ++round) {
        for (uint32_t i = 0; i < 100; ++i) star.rays[(i * 37) % 100]->send(star.rays[(i * 37) % 100]->data(), 8);
        star.nic_hub.poll();
        for (uint32_t i = 0; i < 100; ++i) ASSERT_EQ(star.completed(i), round) << i;
    }
    EXPECT_EQ(star.nic_hub.group->hot_count.load(), Group::kHot);
}

TEST(Groups, PollTheirOwnVisOnly) {
    Group* other = nullptr;
    Matcher unused;
    Star star(0);
    other = star.nic_hub.new_group();
    for (uint32_t i = 0; i < 2; ++i) {
        Group* group = i == 0 ? star.nic_hub.group : other;
        star.hub.push_back(std::make_unique<TestVi>(star.nic_hub, kLevel, 4096, group, group));
        star.rays.push_back(std::make_unique<TestVi>(star.nic_rays, kLevel, 4096));
        star.hub.back()->receive(star.hub.back()->data(), 64);
        connect(*star.hub.back(), *star.rays.back());
        star.rays.back()->send(star.rays.back()->data(), 8);
    }
    ops().poll_group(star.nic_hub.group);
    EXPECT_EQ(star.completed(0), 1u);
    EXPECT_EQ(star.completed(1), 0u) << "the doorbell of the other group is kept for it";
    ops().poll_group(other);
    EXPECT_EQ(star.completed(1), 1u);
}

TEST(Groups, StopTheRingingOfBusyVis) {
    Star star(1);
    for (int i = 0; i < 3; ++i) {
        star.rays[0]->send(star.rays[0]->data(), 8);
        star.nic_hub.poll();
    }
    const uint32_t rings = star.nic_hub.context->hub->rings.load();
    for (int i = 0; i < 4; ++i) {
        star.rays[0]->send(star.rays[0]->data(), 8);
        star.nic_hub.poll();
    }
    EXPECT_EQ(star.completed(0), 7u);
    EXPECT_EQ(star.nic_hub.context->hub->rings.load(), rings);
}

TEST(Groups, GiveThePlaceOfAnIdleViToABusyOne) {
    Star star(9);
    for (auto& ray : star.rays) ray->send(ray->data(), 8);
    star.nic_hub.poll();
    uint32_t cold = 0;
    while (star.hub[cold]->endpoint().recv_hot.load()) ++cold;
    ASSERT_LT(cold, 9u);
    for (int i = 0; i < 3000; ++i) star.nic_hub.poll();
    star.rays[cold]->send(star.rays[cold]->data(), 8);
    star.nic_hub.poll();
    EXPECT_TRUE(star.hub[cold]->endpoint().recv_hot.load());
    for (uint32_t i = 0; i < 9; ++i) star.rays[i]->send(star.rays[i]->data(), 8);
    star.nic_hub.poll();
    for (uint32_t i = 0; i < 9; ++i) EXPECT_EQ(star.completed(i), i == cold ? 3u : 2u);
}

TEST(Groups, ForgetVisThatAreDestroyed) {
    Star star(12);
    for (int round = 0; round < 3; ++round) {
        for (auto& ray : star.rays) ray->send(ray->data(), 8);
        star.nic_hub.poll();
        for (uint32_t i = 0; i < 12; i += 2) {
            star.hub[i]->disconnect();
            star.rays[i]->disconnect();
            for (int k = 0; k < 8; ++k) star.hub[i]->receive(star.hub[i]->data(), 64);
            connect(*star.hub[i], *star.rays[i]);
        }
    }
    star.hub.erase(star.hub.begin() + 1, star.hub.begin() + 6);
    for (int i = 0; i < 10; ++i) star.nic_hub.poll();
    star.rays.back()->send(star.rays.back()->data(), 8);
    star.nic_hub.poll();
    EXPECT_EQ(star.hub.back()->core.recv.completed, 4u);
}

// The only busy VI of a group has a short way of its own through a poll.
TEST(Groups, SettleTheirOnlyBusyViWhenAMessageBreaksIt) {
    Star star(1);
    for (int i = 0; i < 6; ++i) {
        star.rays[0]->send(star.rays[0]->data(), 8);
        star.nic_hub.poll();
    }
    ASSERT_EQ(star.completed(0), 6u);
    star.rays[0]->send(star.rays[0]->data(), 100);  // its receive holds 64 bytes
    star.nic_hub.poll();
    EXPECT_EQ(star.hub[0]->state(), VIP_STATE_ERROR);
    EXPECT_EQ(star.completed(0), 8u) << "what was posted behind it is flushed";
}

// A sleep ends after 100 ms at the latest: a test that sleeps so often has lost its message.
constexpr int kMostSleeps = 100;

// The same questions as VipRecvWait: sleep_begin, one more poll, sleep_wait.
VIP_DESCRIPTOR* receive_after_sleeps(TestVi& vi) {
    NicContext* nic = vi.nic.context;
    VIP_DESCRIPTOR* d = nullptr;
    for (int sleeps = 0; d == nullptr && sleeps < kMostSleeps; ++sleeps) {
        const uint32_t key = ops().sleep_begin(nic);
        d = vi.recv_done();
        if (d == nullptr) ops().sleep_wait(nic, key, INT64_MAX);
        ops().sleep_end(nic);
    }
    return d;
}

TEST(Sleepers, AreWokenByAMessage) {
    TestPair pair(kLevel);
    constexpr int kRounds = 50;
    int slow = 0;  // a sleeper that is not woken is slow in every round
    for (int i = 0; i < kRounds; ++i) {
        pair.b.receive(pair.b.data(), 64);
        tests::SleepMark waits;
        waits.set();
        std::thread sender([&] {
            EXPECT_TRUE(tests::eventually("the receiver sleeps", [&] { return waits.has_slept(); }));
            pair.a.send(pair.a.data(), 8);
        });
        tests::RunningTime time;
        EXPECT_NE(receive_after_sleeps(pair.b), nullptr);
        if (time.running_ns() > 60'000'000) ++slow;
        sender.join();
    }
    EXPECT_LT(slow, kRounds / 2) << "woken by the message, not by the end of a slice";
}

TEST(Sleepers, LoseNoMessageInTheRaceOfFallingAsleep) {
    TestPair pair(kLevel);
    constexpr uint32_t kRounds = 3000;
    constexpr int64_t kSlow = 90'000'000;
    std::atomic<uint32_t> slow{0};
    tests::RunningTime time;
    std::thread echo([&] {
        for (uint32_t i = 0; i < kRounds; ++i) {
            const int64_t begun = time.wall_ns();
            if (receive_after_sleeps(pair.b) == nullptr) return;
            if (time.wall_ns() - begun > kSlow) ++slow;
            pair.b.receive(pair.b.data(), 64);
            pair.b.send(pair.b.data(), 8);
            while (pair.b.send_done() != nullptr) {
            }
        }
    });
    for (int i = 0; i < 8; ++i) {
        pair.a.receive(pair.a.data(), 64);
        pair.b.receive(pair.b.data(), 64);
    }
    uint32_t done = 0;
    for (; done < kRounds; ++done) {
        for (uint32_t k = 0; k < done * 7 % 500; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
        pair.a.send(pair.a.data(), 8);
        if (receive_after_sleeps(pair.a) == nullptr) break;
        pair.a.receive(pair.a.data(), 64);
        while (pair.a.send_done() != nullptr) {
        }
    }
    echo.join();
    EXPECT_EQ(done, kRounds);
    // A round may be slow for want of a processor, too.
    EXPECT_LE(slow, 3 + (time.wall_ns() - time.running_ns()) / kSlow) << "a lost ring costs a slice of 100 ms";
}

TEST(Sleepers, WaitingForAcknowledgementsAreWoken) {
    TestPair pair(VIP_SERVICE_RELIABLE_RECEPTION);
    for (int i = 0; i < 20; ++i) {
        pair.b.receive(pair.b.data(), 64);
        pair.a.send(pair.a.data(), 8);
        // No thread polls the receiver: its progress thread takes the message, and its word wakes us.
        VIP_DESCRIPTOR* d = nullptr;
        tests::RunningTime time;
        for (int sleeps = 0; d == nullptr && sleeps < kMostSleeps; ++sleeps) {
            const uint32_t key = ops().sleep_begin(pair.nic_a.context);
            d = pair.a.send_done();
            if (d == nullptr) ops().sleep_wait(pair.nic_a.context, key, INT64_MAX);
            ops().sleep_end(pair.nic_a.context);
        }
        ASSERT_NE(d, nullptr);
        EXPECT_LT(time.running_ns(), 90'000'000);
        EXPECT_NE(pair.b.recv_done(), nullptr);
    }
}

TEST(Sleepers, KeepTheirDeadline) {
    TestPair pair(kLevel);
    tests::RunningTime time;
    const uint32_t key = ops().sleep_begin(pair.nic_a.context);
    ops().sleep_wait(pair.nic_a.context, key, now_ns() + 20'000'000);
    ops().sleep_end(pair.nic_a.context);
    EXPECT_GE(time.wall_ns(), 19'000'000);
    EXPECT_LT(time.running_ns(), 90'000'000);
}

TEST(Sleepers, AreWokenByWake) {
    TestPair pair(kLevel);
    // A wake-up counts from here on, also one that comes before this thread sleeps.
    const uint32_t key = ops().sleep_begin(pair.nic_a.context);
    tests::SleepMark waits;
    waits.set();
    std::thread other([&] {
        EXPECT_TRUE(tests::eventually("the other thread sleeps", [&] { return waits.has_slept(); }));
        ops().wake(pair.nic_a.context);
    });
    tests::RunningTime time;
    ops().sleep_wait(pair.nic_a.context, key, INT64_MAX);
    ops().sleep_end(pair.nic_a.context);
    const int64_t took = time.running_ns();
    other.join();
    EXPECT_LT(took, 90'000'000);
}

TEST(ManyVis, OfOneContextCostFewDescriptors) {
    const auto descriptors = [] {
        uint32_t count = 0;
        for (int fd = 0; fd < 4096; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
        return count;
    };
    const uint32_t before = descriptors();
    Star star(300);
    EXPECT_LT(descriptors() - before, 40u);
    for (uint32_t i = 0; i < 300; ++i) star.rays[i]->send(star.rays[i]->data(), 8);
    star.nic_hub.poll();
    for (uint32_t i = 0; i < 300; ++i) ASSERT_EQ(star.completed(i), 1u);
}

}  // namespace
}  // namespace viaduct::paramnet::test
