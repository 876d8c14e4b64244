// SPDX-License-Identifier: BSD-2-Clause
// The handler thread: notifications that cannot be made for want of it, and errors that are told to it.

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "tests/eventually.hpp"
#include "vipl/vi.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// Operations of a NIC whose wake-up is a cancellation point, as a write is.
struct CancellableWake {
    static inline const DataOps* real;
    static inline DataOps ops;
    static inline thread_local int wakes = 0;

    static void put_under(Nic& nic) {
        real = nic.ops;
        ops = *real;
        ops.wake = [](NicContext* context) {
            ++wakes;
            ::pthread_testcancel();
            real->wake(context);
        };
        nic.ops = &ops;
    }
};

// A provider tells errors with locks of its own held, inside calls that hold off no cancellation.
TEST(AsyncErrorTest, AThreadThatIsCancelledDoesNotEndWhereItTellsOne) {
    End there, here;
    Errors errors;
    ASSERT_EQ(VipErrorCallback(here.nic, &errors, Errors::handler), VIP_SUCCESS);
    connect(here, there);
    CancellableWake::put_under(inside(here.nic));  // before there is a handler thread that could read it
    ASSERT_EQ(VipPostRecv(here.vi, here.descriptor(1), here.region), VIP_SUCCESS);
    const auto ignore = [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {};
    ASSERT_EQ(VipRecvNotify(here.vi, nullptr, ignore), VIP_SUCCESS);  // the handler thread sleeps in the provider
    ViCore& core = find_vi(here.vi)->core;
    std::atomic<bool> came_back{false};
    std::thread teller([&] {
        ::pthread_cancel(::pthread_self());
        while (CancellableWake::wakes == 0) {
            core.events->async_error(core, VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, 0, nullptr);
            std::this_thread::yield();
        }
        came_back = true;
    });
    teller.join();
    EXPECT_TRUE(came_back);
    EXPECT_EQ(VipErrorCallback(here.nic, nullptr, nullptr), VIP_SUCCESS);
}

// While it lasts, no thread can be started that leaves the size of its stack to the system.
class NoMoreThreads {
public:
    NoMoreThreads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t larger_than_all_addresses;
        ::pthread_attr_init(&larger_than_all_addresses);
        ::pthread_attr_setstacksize(&larger_than_all_addresses, size_t{1} << 52);
        EXPECT_EQ(::pthread_setattr_default_np(&larger_than_all_addresses), 0);
        ::pthread_attr_destroy(&larger_than_all_addresses);
    }
    ~NoMoreThreads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
};

TEST(NotifyTest, WhatIsRefusedForWantOfAThreadIsNeverMade) {
    End end;
    std::atomic<int> refused{0}, made{0};
    const auto count = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
        ++*static_cast<std::atomic<int>*>(context);
    };
    ASSERT_EQ(VipPostRecv(end.vi, end.descriptor(), end.region), VIP_SUCCESS);
    {
        const NoMoreThreads none;
        EXPECT_EQ(VipRecvNotify(end.vi, &refused, count), VIP_ERROR_RESOURCE);
    }
    EXPECT_EQ(VipRecvNotify(end.vi, &made, count), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(end.vi), VIP_SUCCESS);  // flushes the receive
    EXPECT_TRUE(tests::eventually("a notification is made", [&] { return refused + made != 0; }));
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(made, 1);
}

TEST(NotifyTest, WhatIsRefusedOnACompletionQueueIsNeverMadeEither) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(end.nic, 4, &cq), VIP_SUCCESS);
    end.vi = end.create_vi(cq);
    std::atomic<int> refused{0}, made{0};
    const auto count = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
        ++*static_cast<std::atomic<int>*>(context);
    };
    ASSERT_EQ(VipPostRecv(end.vi, end.descriptor(), end.region), VIP_SUCCESS);
    {
        const NoMoreThreads none;
        EXPECT_EQ(VipCQNotify(cq, &refused, count), VIP_ERROR_RESOURCE);
    }
    EXPECT_EQ(VipCQNotify(cq, &made, count), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(end.vi), VIP_SUCCESS);
    EXPECT_TRUE(tests::eventually("a notification is made", [&] { return refused + made != 0; }));
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace viaduct::vipl
