// SPDX-License-Identifier: BSD-2-Clause
// The fuzzer's function on the kept corpus and on seeded scripts: every frame kind in every connection state,
// in every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/wire_frame_fuzz.hpp"

namespace viaduct {
namespace {

TEST(WireFuzz, EveryKindInEveryState) {
    for (int state = 0; state < 24; ++state)
        for (int unstarted = 0; unstarted < 2; ++unstarted)
            for (int kind = 0; kind < 20; ++kind)
                for (const int how : {0, 1, 2, 4, 8, 12, 16, 32, 64, 192, 255}) {
                    std::vector<uint8_t> script = {static_cast<uint8_t>(state + 128 * unstarted)};
                    for (int i = 0; i < 3; ++i)
                        script.insert(script.end(), {0x20, static_cast<uint8_t>(kind),
                                                     static_cast<uint8_t>(how), 0, 9, 3, 200, 17, 255, 4});
                    script.push_back(0x6D);  // and time goes by
                    fuzz::run_wire(script.data(), script.size());
                }
}

TEST(WireFuzz, SeededScripts) {
    std::mt19937 random(20260102);
    for (int run = 0; run < 2000; ++run) {
        std::vector<uint8_t> script(1 + random() % 300);
        for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
        fuzz::run_wire(script.data(), script.size());
    }
}

TEST(WireFuzz, TheKeptCorpus) {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(VIADUCT_WIRE_CORPUS)) {
        std::ifstream in(entry.path(), std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
        SCOPED_TRACE(entry.path().string());
        fuzz::run_wire(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
        ++files;
    }
    EXPECT_GE(files, 20u);
}

}  // namespace
}  // namespace viaduct
