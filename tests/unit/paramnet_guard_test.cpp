// SPDX-License-Identifier: BSD-2-Clause
// The guarded call: refused when permission is withdrawn, and not made when it is withdrawn between the look and
// the call.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "providers/paramnet/guarded_call.hpp"

namespace viaduct::paramnet {
namespace {

std::atomic<uint32_t> closed{0}, handle{77}, life{5};
uint64_t source, target;

long copy_word(uint32_t expected = 77) {
    const iovec local{&source, sizeof source}, remote{&target, sizeof target};
    return guarded_call(Guard{&closed, &handle, expected, 5, &life}, SYS_process_vm_writev, ::getpid(), &local, 1,
                        &remote, 1);
}

TEST(GuardedCall, IsMadeWhilePermitted) {
    source = 42;
    target = 0;
    EXPECT_EQ(copy_word(), static_cast<long>(sizeof target));
    EXPECT_EQ(target, 42u);
}

TEST(GuardedCall, IsRefusedWhenClosedOrTheRegionIsRemoved) {
    source = 43;
    target = 0;
    EXPECT_EQ(copy_word(78), kNotPermitted);
    closed = 1;
    EXPECT_EQ(copy_word(), kNotPermitted);
    closed = 0;
    life = 5 | FUTEX_OWNER_DIED;
    EXPECT_EQ(copy_word(), kNotPermitted);
    life = 5;
    EXPECT_EQ(target, 0u);
}

TEST(GuardedCall, GivesTheErrorOfTheCall) {
    const iovec local{&source, sizeof source}, remote{reinterpret_cast<void*>(8), sizeof target};
    const Guard guard{&closed, &handle, 77, 5, &life};
    EXPECT_EQ(guarded_call(guard, SYS_process_vm_writev, ::getpid(), &local, 1, &remote, 1), -EFAULT);
    EXPECT_EQ(guarded_call(guard, SYS_process_vm_writev, 0x3FFFFFFF, &local, 1, &remote, 1), -ESRCH);
}

uint64_t seen_when_closed;
volatile sig_atomic_t interruptions;

// Permission goes at whatever instruction the timer hits.
void close_now(int) {
    closed.store(1);
    seen_when_closed = *const_cast<volatile uint64_t*>(&target);
    interruptions = interruptions + 1;
}

TEST(GuardedCall, IsNotMadeOncePermissionIsWithdrawn) {
    if (!guard_is_tight())
        GTEST_SKIP() << "no restartable sequences here: the look is as close as can be, not more";
    struct sigaction action {
    }, before{};
    action.sa_handler = close_now;
    ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
    interruptions = 0;
    // For this thread alone: a guard is about the stopped thread. A signal to the process would, when
    // this thread has to wait for a processor, interrupt one that another test has left behind, and take the
    // permission away while the call is being made.
    sigevent to_this_thread{};
    to_this_thread.sigev_notify = SIGEV_THREAD_ID;
    to_this_thread.sigev_signo = SIGALRM;
    to_this_thread._sigev_un._tid = ::gettid();
    timer_t timer;
    ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &to_this_thread, &timer), 0);
    const itimerspec often{{0, 50'000}, {0, 50'000}};
    ASSERT_EQ(::timer_settime(timer, 0, &often, nullptr), 0);
    uint64_t refused = 0;
    for (source = 1; interruptions < 2000; ++source) {
        const long result = copy_word();
        if (closed.load() == 0) continue;
        refused += result == kNotPermitted ? 1 : 0;
        EXPECT_EQ(target, seen_when_closed) << "a call was made after its permission was withdrawn";
        closed = 0;
    }
    ::timer_delete(timer);
    ::sigaction(SIGALRM, &before, nullptr);
    closed = 0;
    EXPECT_GT(refused, 0u) << "no call was hit before its end: this shows nothing";
}

}  // namespace
}  // namespace viaduct::paramnet
