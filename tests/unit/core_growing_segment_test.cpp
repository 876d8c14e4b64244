// SPDX-License-Identifier: BSD-2-Clause
// Memory that one process writes and makes longer, and that other processes can map for reading only.
#include "core/shm/growing_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace viaduct {
namespace {

constexpr size_t kPage = 4096;

char byte_at(const Fd& fd, size_t at) {
    char read = '-';
    EXPECT_EQ(::pread(fd.get(), &read, 1, static_cast<off_t>(at)), 1) << "at " << at;
    return read;
}

bool is_mapped(const std::byte* at) {
    unsigned char resident = 0;
    return ::mincore(const_cast<std::byte*>(at), kPage, &resident) == 0;
}

TEST(GrowingSegment, AddsMemoryAtTheEndOfTheFile) {
    GrowingSegment s("test", 2 * kPage);
    ASSERT_TRUE(s.valid());
    s.data()[0] = std::byte{'a'};
    std::byte* const second = s.grow(kPage);
    std::byte* const third = s.grow(3 * kPage);
    ASSERT_TRUE(second != nullptr && third != nullptr);
    EXPECT_EQ(s.size(), 6 * kPage);
    EXPECT_EQ(third[0], std::byte{0});
    second[0] = std::byte{'b'};
    third[0] = std::byte{'c'};
    third[3 * kPage - 1] = std::byte{'d'};
    const Fd reader = s.for_reading();
    EXPECT_EQ(byte_at(reader, 0), 'a');
    EXPECT_EQ(byte_at(reader, 2 * kPage), 'b');
    EXPECT_EQ(byte_at(reader, 3 * kPage), 'c');
    EXPECT_EQ(byte_at(reader, 6 * kPage - 1), 'd');
}

TEST(GrowingSegment, OthersMapAllOfItForReadingOnly) {
    GrowingSegment s("test", kPage);
    ASSERT_TRUE(s.valid() && s.grow(kPage) != nullptr);
    const Fd given = s.for_reading();
    const std::string again = "/proc/self/fd/" + std::to_string(given.get());
    const Fd reopened(::open(again.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(given.valid() && reopened.valid());
    for (const int fd : {given.get(), reopened.get()}) {
        for (const off_t at : {size_t{0}, kPage}) {
            EXPECT_EQ(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at), MAP_FAILED);
            EXPECT_EQ(::pwrite(fd, "x", 1, at), -1);
            void* const shown = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, at);
            ASSERT_NE(shown, MAP_FAILED);
            EXPECT_NE(::mprotect(shown, kPage, PROT_READ | PROT_WRITE), 0);
            ::munmap(shown, kPage);
        }
        EXPECT_NE(::ftruncate(fd, 0), 0);
    }
}

TEST(GrowingSegment, HasNoMemoryInAForkedChild) {
    GrowingSegment s("test", kPage);
    std::byte* const second = s.valid() ? s.grow(2 * kPage) : nullptr;
    ASSERT_NE(second, nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool none = !is_mapped(s.data()) && !is_mapped(second) && !is_mapped(second + kPage);
        s.reset_after_fork();
        ::_exit(none && !s.valid() && !s.for_reading().valid() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(is_mapped(second));
}

TEST(GrowingSegment, IsNoLongerThanTheLongestFile) {
    GrowingSegment s("test", kPage);
    ASSERT_TRUE(s.valid());
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit three{3 * kPage, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &three), 0);
    EXPECT_EQ(s.grow(3 * kPage), nullptr);
    EXPECT_NE(s.grow(2 * kPage), nullptr);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(s.grow(kPage), nullptr);
}

TEST(GrowingSegment, DoesNotGrowInAFileOfTheProgram) {
    GrowingSegment s("of-a-closed-descriptor", kPage);
    ASSERT_TRUE(s.valid());
    int own = -1;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(entry, gone).string().find("of-a-closed-descriptor") != std::string::npos)
            own = std::stoi(entry.path().filename());
    }
    ASSERT_GE(own, 0);
    // The program closes the descriptor and gets its number for a file of its own.
    const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::dup3(file.get(), own, O_CLOEXEC), own);
    EXPECT_EQ(s.grow(kPage), nullptr);
    EXPECT_FALSE(s.for_reading().valid());
    ::close(own);
}

}  // namespace
}  // namespace viaduct
