// SPDX-License-Identifier: BSD-2-Clause
// Limits of control groups, read from folders made up for it.
#include "core/process/cpu_quota.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

class CpuQuotaFiles : public testing::Test {
protected:
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    const TemporaryFolder temporary_;
    const std::string root_ = temporary_.path();
};

TEST_F(CpuQuotaFiles, OfTheSecondVersionAreTheTightestOnTheWayUp) {
    write("/pod/cpu.max", "150000 100000\n");
    write("/pod/box/cpu.max", "max 100000\n");
    write("/other/cpu.max", "50000 100000\n");
    const CpuQuota quota = cpu_quota_of("0::/pod/box\n", root_);
    EXPECT_DOUBLE_EQ(quota.processors, 1.5);
    EXPECT_EQ(quota.group, cpu_quota_of("0::/pod\n", root_).group);
    EXPECT_NE(quota.group, cpu_quota_of("0::/other\n", root_).group);
}

TEST_F(CpuQuotaFiles, OfTheFirstVersionAreTwoFilesOfTheCpuController) {
    write("/cpu/box/cpu.cfs_quota_us", "200000\n");
    write("/cpu/box/cpu.cfs_period_us", "100000\n");
    write("/cpu/cpu.cfs_quota_us", "-1\n");
    write("/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota_of("3:memory:/x\n4:cpu,cpuacct:/box\n", root_).processors, 2.0);
    EXPECT_DOUBLE_EQ(cpu_quota_of("4:cpu,cpuacct:/\n", root_).processors, 0);
}

TEST_F(CpuQuotaFiles, AreFoundBehindManyControllersAndWhereBothVersionsAreMounted) {
    std::string text;
    for (int i = 13; i > 1; --i)
        text += std::to_string(i) + ":controller" + std::to_string(i) + ":" + std::string(300, 'x') + "\n";
    write("/cpu/pod/cpu.cfs_quota_us", "300000\n");
    write("/cpu/pod/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota_of(text + "1:cpuacct,cpu:/pod/box\n0::/pod\n", root_).processors, 3.0);
    write("/unified/pod/cpu.max", "25000 100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota_of(text + "1:cpuacct,cpu:/pod/box\n0::/pod\n", root_).processors, 0.25);
}

// A container sees its own group as the root, and the path of the host, which is not there.
TEST_F(CpuQuotaFiles, OfAContainerAreAtTheRoot) {
    write("/cpu.max", "120000 100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota_of("0::/kubepods/pod1/box\n", root_).processors, 1.2);
}

TEST_F(CpuQuotaFiles, ThatAreNotThereOrMakeNoSenseLimitNothing) {
    write("/box/cpu.max", "100000\n");
    write("/words/cpu.max", "many 100000\n");
    write("/none/cpu.max", "100000 0\n");
    for (const char* text :
         {"", "0::/words\n", "0::/none\n", "0::/box\n", "0::/gone/far\n", "no colons", "0:", "0::"}) {
        EXPECT_DOUBLE_EQ(cpu_quota_of(text, root_).processors, 0) << text;
        EXPECT_EQ(cpu_quota_of(text, root_).group, "") << text;
    }
}

}  // namespace
}  // namespace viaduct
