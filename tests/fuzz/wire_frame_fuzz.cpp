// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for the wire protocol. The corpus is kept in corpus/wire_frame.
#include "tests/fuzz/wire_frame_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    viaduct::fuzz::run_wire(data, size);
    return 0;
}
