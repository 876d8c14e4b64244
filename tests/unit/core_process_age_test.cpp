// SPDX-License-Identifier: BSD-2-Clause
// A process number that is used again is not taken for the process that had it before.
#include "core/process/process_age.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tests/eventually.hpp"

namespace viaduct {
namespace {

// A child that lives as long as this object.
class Child {
public:
    explicit Child(const char* name = nullptr) : number_(::fork()) {
        if (number_ != 0) return;
        if (name != nullptr) ::prctl(PR_SET_NAME, name);
        ::pause();
        ::_exit(0);
    }
    ~Child() { end(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void end() {
        if (number_ <= 0) return;
        ::kill(number_, SIGKILL);
        ::waitpid(number_, nullptr, 0);
    }
    pid_t number() const { return number_; }

private:
    const pid_t number_;
};

// More than one tick is between what was before and what comes.
void let_a_tick_pass() {
    const uint64_t then = boot_ticks();
    EXPECT_TRUE(tests::eventually("the next tick but one", [then] { return boot_ticks() > then + 1; }));
}

TEST(ProcessAge, AProcessHasStartedBeforeNowAndAfterItsParent) {
    const uint64_t before = boot_ticks();
    let_a_tick_pass();
    const Child child;
    let_a_tick_pass();
    const uint64_t started = started_at(child.number());
    EXPECT_GT(started, before);
    EXPECT_LT(started, boot_ticks());
    EXPECT_LT(started_at(::getpid()), started);
}

TEST(ProcessAge, WhatHasLivedThenAndLivesHasNotEnded) {
    EXPECT_FALSE(has_ended_since(::getpid(), boot_ticks()));
    const Child child;
    let_a_tick_pass();
    EXPECT_FALSE(has_ended_since(child.number(), boot_ticks()));
}

TEST(ProcessAge, ANumberThatIsFreeIsThatOfAnEndedProcess) {
    Child child;
    let_a_tick_pass();
    const uint64_t then = boot_ticks();
    child.end();
    errno = EDOM;
    EXPECT_TRUE(has_ended_since(child.number(), then));
    EXPECT_EQ(errno, EDOM) << "errno stays";
    EXPECT_EQ(started_at(child.number()), 0u);
}

TEST(ProcessAge, ANumberThatALaterProcessHasIsThatOfAnEndedOne) {
    const uint64_t then = boot_ticks();
    let_a_tick_pass();
    const Child later;
    let_a_tick_pass();
    EXPECT_TRUE(has_ended_since(later.number(), then));
}

TEST(ProcessAge, AProgramsNameMayHoldWhatEndsItInProc) {
    let_a_tick_pass();  // since this process has begun
    const Child child(") 1 (2 3) 4");
    let_a_tick_pass();
    EXPECT_GT(started_at(child.number()), started_at(::getpid()));
    EXPECT_LT(started_at(child.number()), boot_ticks());
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

struct Seen {
    int error;
    uint64_t now, started, ended;
};

// What a process sees in a time namespace whose clock is a day and half a second ahead.
Seen seen_in_another_time() {
    Seen seen{};
    const char shift[] = "boottime 86400 500000000";
    const int offsets = ::unshare(CLONE_NEWTIME) == 0 ? ::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC) : -1;
    if (offsets < 0 || ::write(offsets, shift, sizeof shift - 1) < 0) {
        seen.error = errno;
        return seen;
    }
    int told[2];
    if (::pipe(told) != 0) ::_exit(1);
    if (::fork() == 0) {  // children are in that namespace
        seen = {0, boot_ticks(), started_at(::getpid()), has_ended_since(::getpid(), boot_ticks()) ? 1u : 0u};
        ::_exit(::write(told[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
    }
    if (::read(told[0], &seen, sizeof seen) != sizeof seen) ::_exit(1);
    return seen;
}

TEST(ProcessAge, IsTheSameInATimeNamespaceOfAnotherBoot) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const uint64_t before = boot_ticks();
    const pid_t child = ::fork();
    if (child == 0) {
        const Seen seen = seen_in_another_time();
        ::_exit(::write(told[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
    }
    Seen seen{};
    ASSERT_EQ(::read(told[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
    ::waitpid(child, nullptr, 0);
    ::close(told[0]);
    ::close(told[1]);
    if (seen.error != 0) GTEST_SKIP() << "time namespaces: " << std::strerror(seen.error);
    EXPECT_GE(seen.now, before);
    EXPECT_LE(seen.now, boot_ticks());
    EXPECT_GE(seen.started + 1, before) << "each of the two is rounded down";
    EXPECT_LE(seen.started, boot_ticks());
    EXPECT_EQ(seen.ended, 0u);
}

}  // namespace
}  // namespace viaduct
