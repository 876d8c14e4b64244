// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for the agent's message handler.
#include "tests/fuzz/agent_message_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    viaduct::fuzz::run_agent(data, size);
    return 0;
}
