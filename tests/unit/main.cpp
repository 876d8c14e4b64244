// SPDX-License-Identifier: BSD-2-Clause
// The main of GoogleTest programs that have no options of their own.
#include <gtest/gtest.h>

#include "tests/report/googletest_rows.hpp"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return viaduct::tests::choose_cases() ? RUN_ALL_TESTS() : 1;
}
