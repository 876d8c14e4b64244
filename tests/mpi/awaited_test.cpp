// SPDX-License-Identifier: BSD-2-Clause
// What a member has been asked for comes out as it went in, however many wait, and for however long some do.
#include "mpi-adi/engine/rma/awaited.hpp"

#include <gtest/gtest.h>

using namespace viaduct::mpi::rma;

namespace {

TEST(Awaited, ComesOutInOrderWhileItNeverRunsEmpty) {
    AwaitedQueue queue;
    std::vector<char> results(100'000);
    size_t in = 0;
    size_t out = 0;
    const auto push = [&] { queue.push({&results[in++], 1, nullptr}); };
    for (int i = 0; i < 3; i++) push();
    while (in < results.size()) {
        for (size_t i = in % 5 + 1; i > 0 && in < results.size(); i--) push();
        for (size_t i = out % 6; i > 0 && in - out > 1; i--) ASSERT_EQ(queue.pop().result, &results[out++]);
    }
    while (!queue.empty()) ASSERT_EQ(queue.pop().result, &results[out++]);
    EXPECT_EQ(out, results.size());
}

}  // namespace
