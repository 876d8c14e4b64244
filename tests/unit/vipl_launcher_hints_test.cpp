// SPDX-License-Identifier: BSD-2-Clause
// What providers are told of the job that a process belongs to.
#include "vipl/launcher_hints.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace viaduct::vipl {
namespace {

using Variables = std::map<std::string, std::string>;

Hints hints_with(const Variables& variables) {
    for (const char* name : {"PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "SLURM_PROCID", "SLURM_NTASKS"})
        ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const Hints hints = launcher_hints();
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    return hints;
}

TEST(LauncherHints, AreWhatTheLauncherSays) {
    const std::vector<Variables> jobs = {
        {{"PMI_RANK", "3"}, {"PMI_SIZE", "64"}},
        {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "64"}},
        {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "64"}},
        // srun of one process that is a launcher's: the inner launcher counts.
        {{"PMI_RANK", "3"}, {"PMI_SIZE", "64"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
        {{"PMI_RANK", "3"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "64"}}};
    for (const Variables& job : jobs) {
        const Hints hints = hints_with(job);
        EXPECT_EQ(hints.own_rank, 3u);
        EXPECT_EQ(hints.session_size, 64u);
        EXPECT_EQ(hints.expected_peers, 63u);
    }
}

TEST(LauncherHints, AreZerosWithoutALauncherOrWithNonsense) {
    const std::vector<Variables> none = {{},
                                         {{"PMI_RANK", "3"}},
                                         {{"PMI_SIZE", "3"}},
                                         {{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}},
                                         {{"PMI_RANK", "-1"}, {"PMI_SIZE", "3"}},
                                         {{"PMI_RANK", "1x"}, {"PMI_SIZE", "3"}},
                                         {{"PMI_RANK", ""}, {"PMI_SIZE", "3"}},
                                         {{"PMI_RANK", "0"}, {"PMI_SIZE", "99999999999"}}};
    for (const Variables& job : none) {
        const Hints hints = hints_with(job);
        EXPECT_EQ(hints.session_size, 0u);
        EXPECT_EQ(hints.own_rank, 0u);
        EXPECT_EQ(hints.expected_peers, 0u);
    }
}

}  // namespace
}  // namespace viaduct::vipl
