// SPDX-License-Identifier: BSD-2-Clause
// What VipRegisterMem asks the kernel about a range, and the pool behind handles.
#include "vipl/memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "core/memory/mapped.hpp"
#include "vipl/pool.hpp"

namespace viaduct::vipl {
namespace {

class Mapping {
public:
    explicit Mapping(size_t pages)
        : bytes_(pages * 4096),
          start_(static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
    ~Mapping() { ::munmap(start_, bytes_); }
    char* at(size_t page) const { return start_ + page * 4096; }
    size_t bytes() const { return bytes_; }

private:
    size_t bytes_;
    char* start_;
};

TEST(IsMappedTest, AcceptsWhatIsThereAtAnyAlignment) {
    const Mapping memory(3);
    EXPECT_TRUE(is_mapped(memory.at(0), memory.bytes()));
    EXPECT_TRUE(is_mapped(memory.at(1) + 17, 1));
    EXPECT_TRUE(is_mapped(memory.at(0) + 4095, 2));
    static char data[100];
    EXPECT_TRUE(is_mapped(data, sizeof data));
}

TEST(IsMappedTest, RefusesHolesWhereverTheyAre) {
    const Mapping memory(5);
    ::munmap(memory.at(2), 4096);
    EXPECT_TRUE(is_mapped(memory.at(0), 2 * 4096));
    EXPECT_FALSE(is_mapped(memory.at(0), 2 * 4096 + 1));
    EXPECT_FALSE(is_mapped(memory.at(2), 1));
    EXPECT_FALSE(is_mapped(memory.at(0), 5 * 4096));
    EXPECT_TRUE(is_mapped(memory.at(3), 2 * 4096));
    EXPECT_FALSE(is_mapped(nullptr, 64));
}

TEST(IsMappedTest, LooksBehindTheFirstChunk) {
    const Mapping memory(10000);
    EXPECT_TRUE(is_mapped(memory.at(0), memory.bytes()));
    ::munmap(memory.at(9000), 4096);
    EXPECT_FALSE(is_mapped(memory.at(0), memory.bytes()));
}

TEST(MayTouchTest, SeesPermissionsAndHoles) {
    const Mapping memory(6);
    ::mprotect(memory.at(1), 4096, PROT_READ);
    ::mprotect(memory.at(3), 4096, PROT_NONE);
    ::munmap(memory.at(5), 4096);
    EXPECT_TRUE(can_write(memory.at(0), 4096));
    EXPECT_TRUE(can_read(memory.at(0), 3 * 4096));
    EXPECT_FALSE(can_write(memory.at(0), 4097));
    EXPECT_FALSE(can_write(memory.at(1) + 100, 8));
    EXPECT_TRUE(can_write(memory.at(2) + 17, 4096 - 17));
    EXPECT_FALSE(can_read(memory.at(2), 2 * 4096));
    EXPECT_FALSE(can_read(memory.at(5), 1));
    EXPECT_FALSE(can_write(memory.at(4), 2 * 4096));
    EXPECT_TRUE(can_read(memory.at(5), 0));
}

// Memory that the kernel neither maps ahead nor shows to others.
#ifdef SYS_memfd_secret
TEST(MayTouchTest, SecretMemoryMayBeTouched) {
    const auto file = static_cast<int>(::syscall(SYS_memfd_secret, 0));
    if (file < 0) GTEST_SKIP() << "no memfd_secret here";
    ASSERT_EQ(::ftruncate(file, 2 * 4096), 0);
    auto* start = static_cast<char*>(::mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ASSERT_NE(start, MAP_FAILED);
    EXPECT_TRUE(can_write(start, 2 * 4096));
    EXPECT_TRUE(can_read(start, 2 * 4096));
    ::munmap(start + 4096, 4096);
    EXPECT_FALSE(can_write(start, 2 * 4096));
    ::munmap(start, 4096);
    ::close(file);
}
#endif

TEST(MayTouchTest, LeavesTheBytesAsTheyAre) {
    const Mapping memory(2);
    std::memset(memory.at(0), 0x5a, memory.bytes());
    EXPECT_TRUE(can_write(memory.at(0), memory.bytes()));
    EXPECT_TRUE(can_read(memory.at(0), memory.bytes()));
    for (size_t i = 0; i < memory.bytes(); ++i) ASSERT_EQ(memory.at(0)[i], 0x5a) << i;
}

TEST(MayTouchTest, SeesWhereAFileEnds) {
    const int file = ::memfd_create("short", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, 4096), 0);
    auto* start = static_cast<char*>(::mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    EXPECT_TRUE(can_write(start, 4096));
    EXPECT_FALSE(can_write(start, 4097));
    EXPECT_FALSE(can_read(start + 4096, 1));
    ::munmap(start, 2 * 4096);
    ::close(file);
}

TEST(PoolTest, ObjectsAreDistinctAndComeBack) {
    Pool<int> pool;
    std::set<int*> taken;
    for (int i = 0; i < 100; ++i) taken.insert(pool.take());
    EXPECT_EQ(taken.size(), 100U);
    EXPECT_FALSE(taken.contains(nullptr));
    int* one = *taken.begin();
    pool.give_back(one);
    std::set<int*> again;
    for (int i = 0; i < 16; ++i) again.insert(pool.take());
    EXPECT_TRUE(again.contains(one));
}

}  // namespace
}  // namespace viaduct::vipl
