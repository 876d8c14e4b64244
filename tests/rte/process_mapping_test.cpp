// SPDX-License-Identifier: BSD-2-Clause
// PMI_process_mapping as launchers write it, and malformed.
#include "mpi-adi/rte/process_mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace viaduct::rte {
namespace {

using testing::ElementsAre;

TEST(ProcessMapping, places_ranks_block_by_block) {
    EXPECT_THAT(*nodes_from_mapping("(vector,(0,1,4))", 4), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(*nodes_from_mapping("(vector,(0,2,2))", 4), ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(*nodes_from_mapping("(vector,(0,2,1))", 4), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(*nodes_from_mapping("(vector,(0,1,2),(1,2,1))", 5), ElementsAre(0, 0, 1, 2, 0));
    EXPECT_THAT(*nodes_from_mapping("(vector,(0,1,0),(3,1,1))", 2), ElementsAre(3, 3));
}

TEST(ProcessMapping, of_another_form_is_ignored) {
    for (const char* text :
         {"", "(vector", "(vector)", "(vector,)", "(vector,(0,1))", "(vector,(0,1,4)", "(vector,(0,1,4))x",
          "(vector,(0,0,4))", "(vector,(0,1,0))", "(vector,(-1,1,4))", "(vector,(0,1,-4))",
          "(vector,(0,1,99999999999))", "vector,(0,1,4)", "(matrix,(0,1,4))"})
        EXPECT_EQ(nodes_from_mapping(text, 4), std::nullopt) << text;
}

}  // namespace
}  // namespace viaduct::rte
