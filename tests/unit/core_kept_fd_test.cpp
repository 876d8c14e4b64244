// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that the program may have closed and been given anew.
#include "core/shm/kept_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/shm/wake_event.hpp"

namespace viaduct {
namespace {

Fd some_file() { return Fd(::memfd_create("kept", MFD_CLOEXEC)); }

// The program closes that number and has a file of its own there.
int take_over(int number) {
    const Fd own = some_file();
    EXPECT_EQ(::dup3(own.get(), number, O_CLOEXEC), number);
    return number;
}

TEST(KeptFd, ClosesItsOwn) {
    int number = -1;
    {
        const KeptFd kept(some_file());
        number = kept.get();
        EXPECT_TRUE(kept.is_ours());
        EXPECT_EQ(kept.ours(), number);
    }
    EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(KeptFd, LeavesAFileOfTheProgramsAlone) {
    int number = -1;
    {
        const KeptFd kept(some_file());
        number = take_over(kept.get());
        EXPECT_TRUE(kept.valid());
        EXPECT_FALSE(kept.is_ours());
        EXPECT_EQ(kept.ours(), -1);
    }
    EXPECT_GE(::fcntl(number, F_GETFD), 0);
    ::close(number);
}

TEST(KeptFd, KnowsWhenItHasBeenClosed) {
    const KeptFd kept(some_file());
    ::close(kept.get());
    EXPECT_FALSE(kept.is_ours());
}

bool is_readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

TEST(WakeEvent, IsReadableFromTheSignalOn) {
    WakeEvent event;
    EXPECT_FALSE(event.is_ours());
    ASSERT_TRUE(event.open());
    EXPECT_FALSE(is_readable(event.fd()));
    for (int i = 0; i < 10000; ++i) event.signal();
    EXPECT_TRUE(is_readable(event.fd()));
    event.clear();
    EXPECT_FALSE(is_readable(event.fd()));
}

TEST(WakeEvent, WritesIntoNoFileOfTheProgramsAndCanBeOpenedAgain) {
    WakeEvent event;
    ASSERT_TRUE(event.open());
    const int end = event.fd();
    const int own = take_over(end), more = take_over(end + 1);
    EXPECT_FALSE(event.is_ours());
    event.signal();
    EXPECT_EQ(::lseek(own, 0, SEEK_END), 0);
    EXPECT_EQ(::lseek(more, 0, SEEK_END), 0);
    ASSERT_TRUE(event.open());
    event.signal();
    EXPECT_TRUE(is_readable(event.fd()));
    EXPECT_GE(::fcntl(own, F_GETFD), 0);
    EXPECT_GE(::fcntl(more, F_GETFD), 0);
    ::close(own);
    ::close(more);
}

}  // namespace
}  // namespace viaduct
