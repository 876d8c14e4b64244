// SPDX-License-Identifier: BSD-2-Clause
// Handles: whatever bits a program passes, the answer is the object or nothing.
#include "core/handles/handle_table.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace viaduct {
namespace {

const void* as_handle(uintptr_t bits) { return reinterpret_cast<const void*>(bits); }

TEST(HandleTable, KnowsNothingBeforeItIsOpened) {
    HandleTable table;
    int object = 0;
    EXPECT_EQ(table.find(as_handle(0), HandleKind::nic), nullptr);
    EXPECT_EQ(table.find(as_handle(1), HandleKind::nic), nullptr);
    EXPECT_EQ(table.insert(HandleKind::nic, &object), 0u);
    EXPECT_FALSE(table.remove(as_handle(1)));
}

TEST(HandleTable, FindsTheObjectByItsOwnKindOnly) {
    HandleTable table;
    ASSERT_TRUE(table.open());
    int vi = 0, cq = 0;
    const uintptr_t a = table.insert(HandleKind::vi, &vi), b = table.insert(HandleKind::cq, &cq);
    EXPECT_EQ(table.find(as_handle(a), HandleKind::vi), &vi);
    EXPECT_EQ(table.find(as_handle(a), HandleKind::cq), nullptr);
    EXPECT_EQ(table.find(as_handle(b), HandleKind::cq), &cq);
    EXPECT_EQ(table.find(as_handle(b), HandleKind::nic), nullptr);
    EXPECT_TRUE(table.open()) << "opening again changes nothing";
    EXPECT_EQ(table.find(as_handle(a), HandleKind::vi), &vi);
}

TEST(HandleTable, ForgetsAtOnceAndOnce) {
    HandleTable table;
    ASSERT_TRUE(table.open());
    int object = 0;
    const uintptr_t h = table.insert(HandleKind::vi, &object);
    EXPECT_TRUE(table.remove(as_handle(h)));
    EXPECT_EQ(table.find(as_handle(h), HandleKind::vi), nullptr);
    EXPECT_FALSE(table.remove(as_handle(h)));
}

TEST(HandleTable, SurvivesAnyBits) {
    HandleTable table;
    ASSERT_TRUE(table.open());
    int object = 0;
    const uintptr_t live = table.insert(HandleKind::vi, &object);
    std::mt19937_64 random(1);
    for (int i = 0; i < 1'000'000; ++i) {
        const auto bits = static_cast<uintptr_t>(random() >> (i % 50));
        if (bits == live) continue;
        ASSERT_EQ(table.find(as_handle(bits), HandleKind::vi), nullptr) << bits;
    }
    for (const uintptr_t bits :
         {uintptr_t{0}, UINTPTR_MAX, live + 1, live - 1, live + 8, live ^ (uintptr_t{1} << 21)})
        EXPECT_EQ(table.find(as_handle(bits), HandleKind::vi), nullptr) << bits;
    int on_stack = 0;
    EXPECT_EQ(table.find(&on_stack, HandleKind::vi), nullptr);
    EXPECT_EQ(table.find(&object, HandleKind::vi), nullptr) << "a pointer is no handle";
}

TEST(HandleTable, NeverGivesAHandleTwice) {
    HandleTable table;
    ASSERT_TRUE(table.open());
    int object = 0;
    std::set<uintptr_t> seen;
    for (int i = 0; i < 100'000; ++i) {
        const uintptr_t h = table.insert(HandleKind::connection, &object);
        ASSERT_NE(h, 0u);
        ASSERT_TRUE(seen.insert(h).second) << i;
        ASSERT_TRUE(table.remove(as_handle(h)));
    }
}

TEST(HandleTable, IsFullAtItsCapacityAndUsableAgain) {
    HandleTable table;
    ASSERT_TRUE(table.open());
    int object = 0;
    std::vector<uintptr_t> all;
    for (uint32_t i = 0; i < HandleTable::kCapacity - 1; ++i) {  // one is the mark
        all.push_back(table.insert(HandleKind::vi, &object));
        ASSERT_NE(all.back(), 0u) << i;
    }
    EXPECT_EQ(table.insert(HandleKind::vi, &object), 0u);
    ASSERT_TRUE(table.remove(as_handle(all[77])));
    const uintptr_t again = table.insert(HandleKind::vi, &object);
    ASSERT_NE(again, 0u);
    EXPECT_NE(again, all[77]);
}

TEST(HandleTable, AChildHasNoInheritedHandleAndGivesOthers) {  // spec/architecture 7
    HandleTable table;
    ASSERT_TRUE(table.open());
    int object = 0, removed = 0;
    std::vector<uintptr_t> parents;
    for (int i = 0; i < 100; ++i) parents.push_back(table.insert(HandleKind::vi, &object));
    for (int i = 0; i < 50; ++i) {
        const uintptr_t h = table.insert(HandleKind::vi, &removed);
        table.remove(as_handle(h));
        parents.push_back(h);
    }
    const pid_t child = ::fork();
    if (child == 0) {
        table.reset_after_fork();
        for (const uintptr_t h : parents) {
            if (table.find(as_handle(h), HandleKind::vi) != nullptr) ::_exit(1);
            if (table.remove(as_handle(h))) ::_exit(2);
        }
        int own = 0;
        for (int i = 0; i < 200; ++i) {
            const uintptr_t h = table.insert(HandleKind::vi, &own);
            if (h == 0 || table.find(as_handle(h), HandleKind::vi) != &own) ::_exit(3);
            for (const uintptr_t old : parents) {
                if (old == h) ::_exit(4);
            }
        }
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(table.find(as_handle(parents[0]), HandleKind::vi), &object) << "the parent keeps its own";
}

// Objects carry their kind; slots go from kind to kind as fast as can be. A reader gets an object of the kind
// it asked for, or nothing.
TEST(HandleTableStress, ReadersNeverGetAnObjectOfAnotherKind) {
    struct Object {
        HandleKind kind;
    };
    HandleTable table;
    ASSERT_TRUE(table.open());
    Object vi{HandleKind::vi}, cq{HandleKind::cq};
    std::atomic<uintptr_t> published{0};
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> wrong{0}, found{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&] {
            while (!stop.load(std::memory_order_relaxed)) {
                const uintptr_t h = published.load(std::memory_order_relaxed);
                if (h == 0) continue;
                const auto kind = static_cast<HandleKind>(h & 7);
                const auto* object = static_cast<const Object*>(table.find(as_handle(h), kind));
                if (object == nullptr) continue;
                ++found;
                if (object->kind != kind) ++wrong;
            }
        });
    }
    for (int i = 0; i < 300'000 || (found == 0 && i < 30'000'000); ++i) {
        Object& object = i % 2 == 0 ? vi : cq;
        const uintptr_t h = table.insert(object.kind, &object);
        ASSERT_NE(h, 0u);
        published.store(h, std::memory_order_relaxed);
        ASSERT_TRUE(table.remove(as_handle(h)));
    }
    stop = true;
    for (auto& t : readers) t.join();
    EXPECT_GT(found, 0u);
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace viaduct
