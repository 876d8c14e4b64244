// SPDX-License-Identifier: BSD-2-Clause
// Where processes are: two views of one memory, asked by threads that are bound to processors.
#include "core/wait/cpu_placement.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <vector>

namespace viaduct {
namespace {

std::vector<int> own_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    return cpus;
}

class CpuPlacementTest : public testing::Test {
protected:
    CpuPlacementTest() { ::sched_getaffinity(0, sizeof before_, &before_); }
    ~CpuPlacementTest() override { ::sched_setaffinity(0, sizeof before_, &before_); }
    static void go_to(int cpu) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    }

private:
    cpu_set_t before_;
};

TEST_F(CpuPlacementTest, OneThatAskedLastOnAProcessorIsSeenThere) {
    const std::vector<int> cpus = own_processors();
    CpuPlacement first, second;
    ASSERT_TRUE(first.create(0, 3));
    ASSERT_TRUE(second.open(first.name(), 2, 3));
    go_to(cpus.front());
    EXPECT_FALSE(first.shared_with(2)) << "it has told nothing yet";
    EXPECT_TRUE(second.shared_with(0));
    EXPECT_TRUE(first.shared_with(2));
    EXPECT_FALSE(first.shared_with(1)) << "it has never asked";
    EXPECT_FALSE(first.shared_with(0)) << "no process yields to itself";
    if (cpus.size() < 2) return;
    go_to(cpus[1]);
    EXPECT_FALSE(second.shared_with(0)) << "it is on the other one";
    go_to(cpus.front());
    EXPECT_FALSE(first.shared_with(2)) << "it has moved to the other one";
}

TEST_F(CpuPlacementTest, NoProcessHasAPlaceWhereThereAreNone) {
    CpuPlacement none;
    EXPECT_FALSE(none.shared_with(0));
    EXPECT_EQ(none.name(), "");
    CpuPlacement some;
    ASSERT_TRUE(some.create(0, 2));
    EXPECT_FALSE(some.shared_with(2)) << "beyond the last";
    some.leave();
    EXPECT_FALSE(some.shared_with(0));
}

// A number of a descriptor may be another file's by the time it is opened, or mean another process in another
// name space; nothing is written there.
TEST_F(CpuPlacementTest, OtherMemoryIsNotTaken) {
    CpuPlacement one, other, taker;
    ASSERT_TRUE(one.create(0, 2));
    ASSERT_TRUE(other.create(0, 2));
    const std::string good = one.name();
    const std::string own_mark = good.substr(good.rfind(' '));
    const std::string of_other = other.name().substr(0, other.name().rfind(' '));
    const std::string unmarked = good.substr(0, good.rfind(' '));
    EXPECT_TRUE(taker.open(good, 1, 2));
    for (const std::string& name : {of_other + own_mark, unmarked, unmarked + " 1", std::string("1"), std::string(),
                                    std::string("-1 -1 1 1 1"), "1" + good, good.substr(good.find(' '))}) {
        EXPECT_FALSE(taker.open(name, 1, 2)) << name;
        EXPECT_FALSE(taker.shared_with(0));
    }
    EXPECT_FALSE(taker.open(good, 1, 200)) << "it is too small";
}

}  // namespace
}  // namespace viaduct
