// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for a hostile peer of the default NIC.
#include "tests/fuzz/peer_segment_fuzz.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    GTEST_FLAG_SET(break_on_failure, true);  // an expectation of the fixture that fails is a find
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    viaduct::fuzz::run_peer(data, size);
    return 0;
}
