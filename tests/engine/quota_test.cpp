// SPDX-License-Identifier: BSD-2-Clause
// Limits of control groups, read from folders made up for it.
#include "mpi-adi/engine/quota.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace viaduct::mpi {
namespace {

class QuotaFiles : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/quota-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    std::string root_;
};

TEST_F(QuotaFiles, of_the_second_version_are_the_tightest_on_the_way_up) {
    write("/pod/cpu.max", "150000 100000\n");
    write("/pod/box/cpu.max", "max 100000\n");
    write("/other/cpu.max", "50000 100000\n");
    const Quota quota = quota_of("0::/pod/box\n", root_);
    EXPECT_DOUBLE_EQ(quota.processors, 1.5);
    EXPECT_EQ(quota.group, quota_of("0::/pod\n", root_).group);
    EXPECT_NE(quota.group, quota_of("0::/other\n", root_).group);
}

TEST_F(QuotaFiles, of_the_first_version_are_two_files_of_the_cpu_controller) {
    write("/cpu/box/cpu.cfs_quota_us", "200000\n");
    write("/cpu/box/cpu.cfs_period_us", "100000\n");
    write("/cpu/cpu.cfs_quota_us", "-1\n");
    write("/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota_of("3:memory:/x\n4:cpu,cpuacct:/box\n", root_).processors, 2.0);
    EXPECT_DOUBLE_EQ(quota_of("4:cpu,cpuacct:/\n", root_).processors, 0);
}

TEST_F(QuotaFiles, that_are_not_there_or_make_no_sense_limit_nothing) {
    write("/box/cpu.max", "100000\n");
    for (const char* text : {"", "0::/box\n", "0::/gone/far\n", "no colons", "0:", "0::"}) {
        EXPECT_DOUBLE_EQ(quota_of(text, root_).processors, 0) << text;
        EXPECT_EQ(quota_of(text, root_).group, "") << text;
    }
}

}  // namespace
}  // namespace viaduct::mpi
