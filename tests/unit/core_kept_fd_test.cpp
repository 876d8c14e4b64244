// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that the program may have closed and been given anew.
#include "core/shm/kept_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/shm/bell.hpp"

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

TEST(Bell, IsReadableFromTheRingOn) {
    Bell bell;
    EXPECT_FALSE(bell.is_ours());
    ASSERT_TRUE(bell.hang());
    EXPECT_FALSE(is_readable(bell.fd()));
    for (int i = 0; i < 10000; ++i) bell.ring();
    EXPECT_TRUE(is_readable(bell.fd()));
    bell.hush();
    EXPECT_FALSE(is_readable(bell.fd()));
}

TEST(Bell, WritesIntoNoFileOfTheProgramsAndCanBeHungAnew) {
    Bell bell;
    ASSERT_TRUE(bell.hang());
    const int ear = bell.fd();
    const int own = take_over(ear), more = take_over(ear + 1);
    EXPECT_FALSE(bell.is_ours());
    bell.ring();
    EXPECT_EQ(::lseek(own, 0, SEEK_END), 0);
    EXPECT_EQ(::lseek(more, 0, SEEK_END), 0);
    ASSERT_TRUE(bell.hang());
    bell.ring();
    EXPECT_TRUE(is_readable(bell.fd()));
    EXPECT_GE(::fcntl(own, F_GETFD), 0);
    EXPECT_GE(::fcntl(more, F_GETFD), 0);
    ::close(own);
    ::close(more);
}

}  // namespace
}  // namespace viaduct
