// SPDX-License-Identifier: BSD-2-Clause
// Memory that the library maps for itself keeps out of registered regions whose memory the program has unmapped.
#include "core/shm/own_mapping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/memory/region_table.hpp"

namespace viaduct {
namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE, kPlain = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr size_t kPage = 4096;

// Where the system puts the next mapping of that size; free again.
uintptr_t next_place(size_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_NONE, kPlain | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    ::munmap(at, bytes);
    return reinterpret_cast<uintptr_t>(at);
}

uint32_t add(RegionTable& table, uintptr_t base, uint64_t bytes) {
    Region region;
    region.base = base;
    region.length = bytes;
    region.flags = kRegionRdmaWrite;
    return table.add(region);
}

bool overlap(const void* at, size_t bytes, uintptr_t base, size_t length) {
    const auto begin = reinterpret_cast<uintptr_t>(at);
    return begin < base + length && base < begin + bytes;
}

TEST(OwnMapping, KeepsOutOfARegionThatIsNotMapped) {
    for (const size_t unmapped : {kPage, size_t{1} << 20, size_t{1} << 30, size_t{1} << 38})
        for (const size_t bytes : {kPage, size_t{300} << 10, unmapped}) {
            RegionTable table;
            const uintptr_t place = next_place(unmapped);
            const uint32_t handle = add(table, place, unmapped);
            void* at = map_own(bytes, kProtection, kPlain | MAP_NORESERVE);
            ASSERT_NE(at, nullptr);
            EXPECT_FALSE(overlap(at, bytes, place, unmapped)) << unmapped << ' ' << bytes;
            std::memset(at, 1, kPage);
            ::munmap(at, bytes);
            EXPECT_TRUE(table.remove(handle, 0, nullptr));
        }
}

// The region begins, or ends, inside of what the system offers.
TEST(OwnMapping, KeepsOutOfPartsOfIt) {
    constexpr size_t kBytes = 64 * kPage;
    for (const size_t at : {size_t{0}, 5 * kPage + 8, kBytes - 8}) {
        RegionTable table;
        const uintptr_t place = next_place(kBytes);
        add(table, place + at, 8);
        void* mapped = map_own(kBytes, kProtection, kPlain);
        ASSERT_NE(mapped, nullptr);
        EXPECT_FALSE(overlap(mapped, kBytes, place + at, 8)) << at;
        ::munmap(mapped, kBytes);
    }
}

TEST(OwnMapping, ManyRegionsLeaveRoomBetweenThem) {
    constexpr size_t kBytes = 16 * kPage, kRegions = 500;
    RegionTable tables[2];
    const uintptr_t place = next_place(2 * kRegions * kBytes);
    for (size_t i = 0; i < kRegions; ++i) add(tables[i % 2], place + 2 * i * kBytes, kBytes);
    void* mapped[100];
    for (void*& at : mapped) {
        at = map_own(kBytes, kProtection, kPlain);
        ASSERT_NE(at, nullptr);
        for (size_t i = 0; i < kRegions; ++i) EXPECT_FALSE(overlap(at, kBytes, place + 2 * i * kBytes, kBytes));
    }
    for (void* at : mapped) ::munmap(at, kBytes);
}

TEST(OwnMapping, WhatIsNotRegisteredAnyMoreIsRoomAgain) {
    constexpr size_t kBytes = size_t{1} << 28;
    uintptr_t place = next_place(kBytes);
    {
        RegionTable table;
        add(table, place, kBytes);
    }
    RegionTable table;
    const uint32_t handle = add(table, place = next_place(kBytes), kBytes);
    EXPECT_TRUE(table.remove(handle, 0, nullptr));
    void* at = map_own(kBytes, PROT_NONE, kPlain | MAP_NORESERVE);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at), place);
    ::munmap(at, kBytes);
}

// The tables of the parent are on no list of the child's, and their entries are not there to be read.
TEST(OwnMapping, AForkedChildKeepsOutOfNothing) {
    constexpr size_t kBytes = size_t{1} << 28;
    RegionTable table;
    add(table, next_place(kBytes), kBytes);
    const pid_t child = ::fork();
    if (child == 0) {
        const uintptr_t place = next_place(kBytes);  // the table's memory is free again
        ::_exit(reinterpret_cast<uintptr_t>(map_own(kBytes, PROT_NONE, kPlain | MAP_NORESERVE)) == place ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(OwnMapping, GivesBackAllThatItLookedAt) {
    constexpr size_t kUnmapped = size_t{1} << 34;
    RegionTable table;
    add(table, next_place(kUnmapped), kUnmapped);
    const auto pages = [] {
        unsigned long mapped = 0;
        FILE* statm = std::fopen("/proc/self/statm", "r");
        EXPECT_EQ(std::fscanf(statm, "%lu", &mapped), 1);
        std::fclose(statm);
        return mapped;
    };
    const unsigned long before = pages();
    for (int i = 0; i < 50; ++i) {
        void* at = map_own(kUnmapped, PROT_NONE, kPlain | MAP_NORESERVE);
        ASSERT_NE(at, nullptr);
        ::munmap(at, kUnmapped);
    }
    EXPECT_LE(pages(), before + 1000);
}

TEST(OwnMapping, SaysWhyThereIsNone) {
    errno = 0;
    EXPECT_EQ(map_own(size_t{1} << 60, kProtection, kPlain), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(map_own(kPage, kProtection, MAP_SHARED, -1), nullptr);
    EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace viaduct
