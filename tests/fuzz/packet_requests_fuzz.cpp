// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for requests to programs behind one address.
#include "tests/fuzz/packet_requests_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    viaduct::fuzz::run_requests(data, size);
    return 0;
}
