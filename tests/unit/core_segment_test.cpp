// SPDX-License-Identifier: BSD-2-Clause
// Segments and descriptors: what is sealed, what is refused, what a child does not see.
#include "core/shm/segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace viaduct {
namespace {

using Access = Segment::Access;

Fd memfd(unsigned flags, off_t bytes, int seals) {
    Fd fd(::memfd_create("test", MFD_CLOEXEC | flags));
    if (!fd.valid() || ::ftruncate(fd.get(), bytes) != 0) return Fd();
    if (seals != 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return Fd();
    return fd;
}

TEST(Segment, IsZeroedRoundedToPagesAndWritable) {
    Segment s = Segment::create("test", 5000);
    ASSERT_TRUE(s.valid());
    EXPECT_EQ(s.size(), 8192u);
    for (size_t i = 0; i < s.size(); ++i) ASSERT_EQ(s.data()[i], std::byte{0});
    s.data()[8191] = std::byte{7};
}

TEST(Segment, RefusesSizesThatCannotBe) {
    EXPECT_FALSE(Segment::create("test", 0).valid());
    EXPECT_FALSE(Segment::create("test", SIZE_MAX).valid());
}

TEST(Segment, LongerThanTheProcessMayMakeFilesIsRefusedWithoutASignal) {
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit low = before;
    low.rlim_cur = 8192;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
    const uint64_t longest = largest_file();
    const bool fits = Segment::create("test", 8192).valid();
    const bool too_long = Segment::create("test", 8193).valid();
    const int room = Segment::reserve("test", 12288).fd();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(longest, 8192u);
    EXPECT_TRUE(fits);
    EXPECT_FALSE(too_long);
    EXPECT_EQ(room, -1);
}

TEST(Segment, CannotBeShrunkGrownOrUnsealed) {
    Segment s = Segment::create("test", 4096);
    ASSERT_TRUE(s.valid());
    EXPECT_NE(::ftruncate(s.fd(), 0), 0);
    EXPECT_NE(::ftruncate(s.fd(), 8192), 0);
    EXPECT_NE(::fcntl(s.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Segment, IsSharedByTwoMappings) {
    Segment a = Segment::create("test", 4096);
    Segment b = Segment::map(a.duplicate(Access::read_write), 4096, Access::read_write);
    ASSERT_TRUE(b.valid());
    a.data()[100] = std::byte{42};
    EXPECT_EQ(b.data()[100], std::byte{42});
    EXPECT_EQ(b.fd(), -1) << "the descriptor is kept only when asked for";
}

TEST(Segment, KeepsTheDescriptorWhenAsked) {
    Segment a = Segment::create("test", 4096);
    Segment b = Segment::map(a.duplicate(Access::read_write), 4096, Access::read_only, true);
    ASSERT_TRUE(b.valid());
    EXPECT_GE(b.fd(), 0);
    b.drop_fd();
    EXPECT_EQ(b.fd(), -1);
}

TEST(Segment, ThatOnlyItsMakerWritesIsReadOnlyForAllOthers) {
    Segment mine = Segment::create("test", 4096, Access::read_only);
    ASSERT_TRUE(mine.valid());
    mine.data()[0] = std::byte{1};

    Fd given = mine.duplicate(Access::read_only);
    ASSERT_TRUE(given.valid());
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, given.get(), 0), MAP_FAILED);
    EXPECT_EQ(::pwrite(given.get(), "x", 1, 0), -1);
    const std::string again = "/proc/self/fd/" + std::to_string(given.get());
    const Fd reopened(::open(again.c_str(), O_RDWR | O_CLOEXEC));
    if (reopened.valid()) {
        EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reopened.get(), 0), MAP_FAILED);
    }
    Segment theirs = Segment::map(std::move(given), 4096, Access::read_only);
    ASSERT_TRUE(theirs.valid());
    EXPECT_NE(::mprotect(theirs.data(), 4096, PROT_READ | PROT_WRITE), 0);
    mine.data()[0] = std::byte{2};
    EXPECT_EQ(theirs.data()[0], std::byte{2});
}

TEST(Segment, PromisesReadOnlyOnlyWhereItCanKeepIt) {
    Segment shared = Segment::create("test", 4096);
    EXPECT_FALSE(shared.duplicate(Access::read_only).valid());
}

TEST(Segment, RefusesToMapWhatItsOwnerCouldShrink) {
    EXPECT_FALSE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, 0), 4096, Access::read_only).valid());
    EXPECT_FALSE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, F_SEAL_GROW), 4096, Access::read_only).valid());
    EXPECT_TRUE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, F_SEAL_SHRINK), 4096, Access::read_only).valid());
}

TEST(Segment, RefusesHugePagesWhichMayBeMissingWhenTouched) {
    Fd huge = memfd(MFD_ALLOW_SEALING | MFD_HUGETLB, 32 << 20, F_SEAL_SHRINK | F_SEAL_GROW);
    if (!huge.valid()) GTEST_SKIP() << "this system has no huge pages for memory files";
    EXPECT_FALSE(Segment::map(std::move(huge), 4096, Access::read_write).valid());
}

TEST(Segment, RefusesToMapMoreThanThereIs) {
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    EXPECT_FALSE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, seals), 4097, Access::read_only).valid());
    EXPECT_FALSE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, seals), SIZE_MAX, Access::read_only).valid());
    EXPECT_FALSE(Segment::map(memfd(MFD_ALLOW_SEALING, 4096, seals), 0, Access::read_only).valid());
}

TEST(Segment, RefusesOtherKindsOfDescriptor) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd writing(ends[1]);
    EXPECT_FALSE(Segment::map(Fd(ends[0]), 4096, Access::read_only).valid());
    EXPECT_FALSE(
        Segment::map(Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 4096, Access::read_only).valid());
    EXPECT_FALSE(Segment::map(Fd(), 4096, Access::read_only).valid());
}

TEST(Segment, MovesAndUnmapsOnce) {
    Segment a = Segment::create("test", 4096);
    std::byte* address = a.data();
    const Segment& moved_from = a;
    Segment b(std::move(a));
    EXPECT_FALSE(moved_from.valid());
    EXPECT_EQ(b.data(), address);
    Segment c;
    c = std::move(b);
    EXPECT_EQ(c.data(), address);
    c.reset();
    EXPECT_FALSE(c.valid());
    EXPECT_EQ(::msync(address, 4096, MS_ASYNC), -1);
    EXPECT_EQ(errno, ENOMEM) << "still mapped";
}

TEST(Segment, IsNotMappedInAForkedChild) {
    Segment s = Segment::create("test", 4096);
    ASSERT_TRUE(s.valid());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::msync(s.data(), 4096, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FileDescriptors, AreCloseOnExecAndAboveTheStandardThree) {
    Segment s = Segment::create("test", 4096);
    Fd copy = s.duplicate(Access::read_write);
    for (const int fd : {s.fd(), copy.get()}) {
        EXPECT_GT(fd, 2);
        EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
}

TEST(FileDescriptors, AreMovedUpWhenAStandardOneIsFree) {
    const int saved = ::fcntl(0, F_DUPFD_CLOEXEC, 10);
    ASSERT_GE(saved, 0);
    ::close(0);
    const int low = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int moved = above_stdio(low);
    const bool low_is_closed = ::fcntl(0, F_GETFD) == -1;
    ::dup2(saved, 0);
    ::close(saved);
    EXPECT_EQ(low, 0);
    EXPECT_GT(moved, 2);
    EXPECT_TRUE(low_is_closed);
    EXPECT_EQ(::fcntl(moved, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ::close(moved);
}

TEST(FileDescriptors, KeepErrnoWhenClosed) {
    errno = EXDEV;
    { const Fd fd(1'000'000); }
    EXPECT_EQ(errno, EXDEV);
    EXPECT_EQ(above_stdio(-1), -1);
}

}  // namespace
}  // namespace viaduct
