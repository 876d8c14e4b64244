// SPDX-License-Identifier: BSD-2-Clause
// Where the stacks of the library's threads lie, and that they are given back.
#include "vipl/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "core/memory/region_table.hpp"
#include "tests/eventually.hpp"

namespace viaduct::vipl {
namespace {

struct Seen {
    std::atomic<uintptr_t> stack{0};
    bool exits = false;
};

void note(void* argument) {
    auto* seen = static_cast<Seen*>(argument);
    const bool exits = seen->exits;
    seen->stack.store(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
    if (exits) ::pthread_exit(nullptr);
}

uintptr_t stack_of_a_thread(size_t bytes, bool exits = false) {
    static Seen seen;
    seen.stack.store(0);
    seen.exits = exits;
    EXPECT_EQ(start_thread("vipl-test", bytes, note, &seen), Status::ok);
    EXPECT_TRUE(tests::eventually("the thread runs", [] { return seen.stack.load() != 0; }));
    return seen.stack.load();
}

unsigned long pages_mapped() {
    unsigned long mapped = 0;
    FILE* statm = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(std::fscanf(statm, "%lu", &mapped), 1);
    std::fclose(statm);
    return mapped;
}

TEST(Thread, HasItsStackOutsideOfRegisteredMemory) {
    RegionTable table;
    for (const size_t bytes : {kSmallStack, kDefaultStack}) {
        const size_t unmapped = bytes == kDefaultStack ? size_t{8} << 20 : bytes;
        void* at = ::mmap(nullptr, unmapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ASSERT_NE(at, MAP_FAILED);
        ::munmap(at, unmapped);
        Region region;
        region.base = reinterpret_cast<uintptr_t>(at);
        region.length = unmapped;
        const uint32_t handle = table.add(region);
        for (int i = 0; i < 8; ++i) EXPECT_GE(stack_of_a_thread(bytes) - region.base, unmapped);
        table.remove(handle, 0, nullptr);
    }
}

// What the C library keeps of threads that have ended is no place either: the program may have registered memory there.
TEST(Thread, HasNotTheStackOfAThreadOfTheProgramThatHasEnded) {
    RegionTable table;
    Region region;
    std::thread([&] {
        region.base = (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~uintptr_t{0xfff}) - 0x8000;
        region.length = 0x9000;
        table.add(region);
    }).join();
    for (int i = 0; i < 4; ++i) EXPECT_GE(stack_of_a_thread(kDefaultStack) - region.base, region.length);
}

TEST(Thread, StacksAreGivenBackWhenTheNextOneStarts) {
    stack_of_a_thread(kDefaultStack);
    const unsigned long before = pages_mapped();
    for (int i = 0; i < 200; ++i) stack_of_a_thread(kDefaultStack, i % 2 != 0);
    // Those that have just ended may still be there.
    EXPECT_TRUE(tests::eventually("the stacks are given back", [&] {
        stack_of_a_thread(kSmallStack);
        return pages_mapped() < before + 20 * 2048;
    }));
}

}  // namespace
}  // namespace viaduct::vipl
