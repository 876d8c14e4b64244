// SPDX-License-Identifier: BSD-2-Clause
// The fuzzer's function on a fixed conversation and on seeded mutations of it: always the same, so it belongs
// to the tests of every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/fuzz/agent_message_fuzz.hpp"

namespace viaduct {
namespace {

TEST(KagentFuzzTest, TheSeedConversationRuns) {
    const auto seed = fuzz::seed_conversation();
    fuzz::run_agent(seed.data(), seed.size());
    fuzz::run_agent(seed.data(), 0);
    for (size_t n = 0; n < seed.size(); n += 7) fuzz::run_agent(seed.data(), n);
}

TEST(KagentFuzzTest, MutatedConversationsNeverCrashNorLeaveAnythingBehind) {
    const auto seed = fuzz::seed_conversation();
    std::mt19937 random(20260101);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
    // Mutations by the hundred thousand, most of them piled up a few on one run.
    int mutations = 0;
    while (mutations < 100'000) {
        auto bytes = seed;
        const size_t changes = 1 + pick(24);
        for (size_t i = 0; i < changes && bytes.size() > 8; ++i, ++mutations) {
            const size_t at = pick(bytes.size());
            switch (pick(5)) {
                case 0:
                    bytes[at] = static_cast<uint8_t>(random());
                    break;
                case 1:
                    bytes[at] ^= static_cast<uint8_t>(1u << pick(8));
                    break;
                case 2:
                    bytes.erase(bytes.begin() + static_cast<long>(at));
                    break;
                case 3:
                    bytes.insert(bytes.begin() + static_cast<long>(at), static_cast<uint8_t>(random()));
                    break;
                case 4: {
                    const size_t n = std::min(pick(64) + 1, bytes.size() - at);
                    std::copy_n(bytes.begin() + static_cast<long>(pick(bytes.size() - n + 1)), n,
                                bytes.begin() + static_cast<long>(at));
                    break;
                }
            }
        }
        fuzz::run_agent(bytes.data(), bytes.size());
    }
}

TEST(KagentFuzzTest, RandomRecordsNeverCrash) {
    std::mt19937 random(42);
    for (int run = 0; run < 2000; ++run) {
        std::vector<uint8_t> bytes;
        for (int record = 0; record < 20; ++record) {
            const uint8_t head[] = {static_cast<uint8_t>(random()),      static_cast<uint8_t>(random() % 24),
                                    static_cast<uint8_t>(random()),      static_cast<uint8_t>(random() | 1),
                                    static_cast<uint8_t>(random() % 40), 0};
            bytes.insert(bytes.end(), std::begin(head), std::end(head));
            for (int i = 0; i < head[4]; ++i)
                bytes.push_back(static_cast<uint8_t>(random() % 3 == 0 ? 100 : 0));
        }
        fuzz::run_agent(bytes.data(), bytes.size());
    }
}

}  // namespace
}  // namespace viaduct
