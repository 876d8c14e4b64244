// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for a hostile peer of the default NIC.
#include "tests/fuzz/peer_segment_fuzz.hpp"

#include <csignal>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    // An expectation of the fixture that fails is a find. It breaks with SIGTRAP, which libFuzzer does not
    // take for one: the input would not be kept.
    GTEST_FLAG_SET(break_on_failure, true);
    std::signal(SIGTRAP, [](int) { std::abort(); });
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    viaduct::fuzz::run_peer(data, size);
    return 0;
}
