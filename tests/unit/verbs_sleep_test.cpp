// SPDX-License-Identifier: BSD-2-Clause
// Events of the device's completion queues: no thread sleeps through one that another thread has taken.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

DeviceQueue* has_an_event = nullptr;

int take_event(ibv_comp_channel*, ibv_cq** cq, void** user) {
    if (has_an_event == nullptr) return -1;
    *cq = has_an_event->cq;
    *user = std::exchange(has_an_event, nullptr);
    return 0;
}
int destroy_nothing(ibv_cq*) { return 0; }

class VerbsSleep : public test::VerbsFixture {
protected:
    VerbsSleep() {
        table_.get_cq_event = take_event;
        table_.destroy_cq = destroy_nothing;
        nic_.groups = {&group_};
    }
};

TEST_F(VerbsSleep, TheEndOfAGroupWakesTheSleepersOfOthersWhoseEventsItHasTaken) {
    Group* other = nullptr;
    ASSERT_EQ(group_create(&nic_, &other), Status::ok);
    const uint32_t key = sleep_begin(&nic_);
    ASSERT_EQ(group_.armed.load(), 1u);
    has_an_event = group_.queues[0].get();
    group_destroy(other);
    ASSERT_EQ(has_an_event, nullptr) << "nothing would be left for the sleeping thread";
    EXPECT_EQ(group_.armed.load(), 0u);
    EXPECT_NE(nic_.wakes.load(), key) << "he has to look, and arm it again";
    sleep_end(&nic_);
}

// The library waits for the end of a queue until each of its events that was taken has been acknowledged, and
// the group has done that for the last time.
NicContext* of_the_queue = nullptr;
bool others_may_take_events = false;
int destroy_and_look(ibv_cq*) {
    std::thread([] {
        others_may_take_events = of_the_queue->groups_mutex.try_lock();
        if (others_may_take_events) of_the_queue->groups_mutex.unlock();
    }).join();
    return 0;
}

TEST_F(VerbsSleep, NoThreadTakesAnEventOfAQueueThatIsBeingDestroyed) {
    table_.destroy_cq = destroy_and_look;
    of_the_queue = &nic_;
    others_may_take_events = true;
    Group* other = nullptr;
    ASSERT_EQ(group_create(&nic_, &other), Status::ok);
    group_destroy(other);
    EXPECT_FALSE(others_may_take_events);
}

TEST_F(VerbsSleep, AGroupCountsAsArmedNoSoonerThanTheDeviceIsTold) {
    std::atomic<pid_t> id{0};
    std::atomic<int> slept{0};
    group_.cq_lock.lock();  // another thread polls
    std::thread arms([&] {
        slept = test::sleeps_of(::gettid());
        id = ::gettid();
        arm(group_);
    });
    while (id == 0) std::this_thread::yield();
    while (test::sleeps_of(id) == slept) std::this_thread::yield();  // until it waits for its turn
    EXPECT_EQ(fake_.armed, 0);
    EXPECT_EQ(group_.armed.load(), 0u) << "another one would go to sleep on it";
    group_.cq_lock.unlock();
    arms.join();
    EXPECT_EQ(fake_.armed, 1);
    EXPECT_EQ(group_.armed.load(), 1u);
}

}  // namespace
}  // namespace viaduct::verbs
