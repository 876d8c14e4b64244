// SPDX-License-Identifier: BSD-2-Clause
// The hostile peer of the fuzzer on its seed scripts and on seeded mutations of them: always the same, so it
// belongs to the tests of every build.
#include <algorithm>
#include <random>

#include "tests/fuzz/peer_segment_fuzz.hpp"

namespace viaduct::paramnet::test {
namespace {

TEST(PeerFuzz, SeedScriptsRun) {
    for (const auto& seed : fuzz::seed_scripts()) {
        fuzz::run_peer(seed.data(), seed.size());
        for (size_t n = 0; n < seed.size(); n += 29) fuzz::run_peer(seed.data(), n);
    }
}

TEST(PeerFuzz, MutatedScriptsNeverCrashNorTouchMemoryOutside) {
    const auto seeds = fuzz::seed_scripts();
    std::mt19937 random(20260302);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
    for (int run = 0; run < 600; ++run) {
        auto bytes = seeds[pick(seeds.size())];
        const auto& other = seeds[pick(seeds.size())];
        bytes.insert(bytes.end(), other.begin() + 2, other.end());
        for (size_t changes = 1 + pick(16); changes != 0; --changes) {
            const size_t at = pick(bytes.size());
            if (pick(3) == 0) {
                bytes.insert(bytes.begin() + static_cast<long>(at), static_cast<uint8_t>(random()));
            } else {
                bytes[at] = pick(2) == 0 ? static_cast<uint8_t>(random())
                                         : static_cast<uint8_t>(bytes[at] ^ 1u << pick(8));
            }
        }
        fuzz::run_peer(bytes.data(), bytes.size());
    }
}

}  // namespace
}  // namespace viaduct::paramnet::test
