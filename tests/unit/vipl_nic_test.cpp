// SPDX-License-Identifier: BSD-2-Clause
// The life of a NIC handle: a NIC that fails, is closed, is pinned, or opens slowly.
#include "vipl/nic.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"
#include "vipl/policy.hpp"
#include "vipl/user_agent.hpp"
#include "vipl/vi.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

TEST(NicFailedTest, BreaksEveryConnectionAndIsToldOnce) {
    End here, there;
    Errors errors;
    ASSERT_EQ(VipErrorCallback(here.nic, &errors, Errors::handler), VIP_SUCCESS);
    const VIP_VI_HANDLE idle = here.create_vi();
    connect(here, there);
    ASSERT_EQ(VipPostRecv(here.vi, here.descriptor(), here.region), VIP_SUCCESS);

    nic_failed(inside(here.nic));

    EXPECT_EQ(here.state(), VIP_STATE_ERROR);
    VIP_DESCRIPTOR* flushed = nullptr;
    EXPECT_EQ(VipRecvDone(here.vi, &flushed), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(flushed, here.descriptor());
    EXPECT_TRUE(tests::eventually("the error is reported", [&] { return errors.catastrophic != 0; }));
    EXPECT_EQ(errors.others, 0);
    // All that is reported before another error has come when that one comes.
    ViCore& core = find_vi(idle)->core;
    core.events->async_error(core, VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, 0, nullptr);
    EXPECT_TRUE(tests::eventually("the next error is reported", [&] { return errors.others != 0; }));
    EXPECT_EQ(errors.catastrophic, 1);
    EXPECT_EQ(errors.others, 1);
    // A VI that was not connected has lost nothing.
    EXPECT_EQ(VipDestroyVi(idle), VIP_SUCCESS);
    EXPECT_EQ(VipErrorCallback(here.nic, nullptr, nullptr), VIP_SUCCESS);
}

// A thread that creates a VI holds the NIC's mutex while it asks the agent for more; when that agent has died, it tells
// the next one of every NIC on the list.
TEST(NicFailedTest, LeavesTheListOfOpenNicsToAThreadThatHoldsItsMutex) {
    End here;
    Nic& nic = inside(here.nic);
    Errors errors;
    ASSERT_EQ(VipErrorCallback(here.nic, &errors, Errors::handler), VIP_SUCCESS);
    constexpr int kLooks = 50;
    std::atomic<int> looks{0};
    std::thread reconnecting;
    {
        const std::lock_guard lock(nic.mutex);
        nic.library->events->nic_failed(nic.context_id);
        // The value with which the C library's mutex says that a thread sleeps until it is free.
        const auto is_waited_for = [&] {
            return std::atomic_ref(nic.mutex.native_handle()->__data.__lock).load() == 2;
        };
        EXPECT_TRUE(tests::eventually("a thread waits for the mutex", is_waited_for));
        reconnecting = std::thread([&] {
            for (; looks < kLooks; ++looks) nic.library->for_each_open([](Nic&) {});
        });
        EXPECT_TRUE(tests::eventually("the list is looked through", [&] { return looks == kLooks; }));
    }
    reconnecting.join();
    EXPECT_TRUE(tests::eventually("the error is reported", [&] { return errors.catastrophic != 0; }));
    EXPECT_EQ(errors.catastrophic, 1);
    EXPECT_EQ(VipErrorCallback(here.nic, nullptr, nullptr), VIP_SUCCESS);
}

// Operations of a NIC among which its wake-up stays for a while when one thread calls it.
struct SlowWake {
    static inline const DataOps* real;
    static inline DataOps ops;
    static inline std::latch reached{1};
    static inline std::latch go_on{1};
    static inline std::atomic<bool> nic_is_closed{false};
    static inline thread_local bool this_thread = false;

    static void put_under(Nic& nic) {
        real = nic.ops;
        ops = *real;
        ops.wake = [](NicContext* context) {
            if (this_thread) {
                reached.count_down();
                go_on.wait();
            }
            real->wake(context);
        };
        ops.close = [](NicContext* context) {
            nic_is_closed = true;
            real->close(context);
        };
        nic.ops = &ops;
    }
};

TEST(NicCloseTest, WaitsForAThreadOfTheProviderThatSettlesABrokenConnection) {
    End there;
    auto here = std::make_unique<End>();
    connect(*here, there);
    Nic& nic = inside(here->nic);
    Vi& vi = *find_vi(here->vi);
    SlowWake::put_under(nic);
    std::thread of_provider([&] {
        SlowWake::this_thread = true;
        vi.core.mark_broken({});
        vi.core.events->settle(vi.core);
    });
    SlowWake::reached.wait();
    std::atomic<pid_t> closing_thread{0};
    std::thread closing([&] {
        closing_thread = ::gettid();
        here.reset();
    });
    EXPECT_TRUE(tests::eventually("the closing thread waits", [&] {
        return SlowWake::nic_is_closed || (nic.handle.load() == 0 && tests::sleeps_now(closing_thread));
    }));
    EXPECT_FALSE(SlowWake::nic_is_closed);
    SlowWake::go_on.count_down();
    of_provider.join();
    closing.join();
    EXPECT_TRUE(SlowWake::nic_is_closed);
}

TEST(NicPinTest, AClosedNicIsNotPinned) {
    use_this_build();
    VIP_NIC_HANDLE nic = nullptr;
    ASSERT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
    Nic& object = inside(nic);
    EXPECT_TRUE(NicPin(nic));
    EXPECT_EQ(object.users.load(), 0U) << "a pin that has ended is still counted";
    ASSERT_EQ(VipCloseNic(nic), VIP_SUCCESS);
    EXPECT_FALSE(NicPin(nic));
    EXPECT_FALSE(NicPin::try_pin(object));
    EXPECT_EQ(object.users.load(), 0U);
}

// In a process of its own, which begins as this program does: an agent is chosen once in a process's life.
int opened_by_a_slow_provider() {
    use_this_build();
    const std::string agent = "@viaduct-unit-slow-" + std::to_string(::getpid());
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("VIADUCT_AGENT", agent.c_str(), 1);
        ::setenv("VIADUCT_PROVIDER_PATH", VIADUCT_TEST_SLOW_PROVIDER, 1);
        ::setenv("VIADUCT_NAMES_DEFAULT_PROVIDER", "slow", 1);
        VIP_NIC_HANDLE nic = nullptr;
        const tests::RunningTime time;  // by the clock that the provider moves
        if (VipOpenNic("nic0", &nic) != VIP_SUCCESS) ::_exit(1);
        ::_exit(time.wall_ns() > limit_ns(TimeLimit::agent_call) ? 0 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OpenNicTest, AProviderMayTakeLongerToStartThanTheAgentHasForItsAnswers) {
    EXPECT_EQ(opened_by_a_slow_provider(), 0) << "1: refused, 2: it was not slow";
}

}  // namespace
}  // namespace viaduct::vipl
