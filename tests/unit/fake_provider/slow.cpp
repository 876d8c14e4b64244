// SPDX-License-Identifier: BSD-2-Clause
// The default NIC, by a provider that takes longer to start its device than an agent has for its answers.
#include <dlfcn.h>

#include <cstdint>

#include "viaduct/provider.hpp"

namespace {

const viaduct::Provider& paramnet() {
    static const auto* const symbol = static_cast<const viaduct::Provider*>(
        ::dlsym(::dlopen(VIADUCT_TEST_PARAMNET, RTLD_NOW | RTLD_LOCAL), "viaduct_provider_v1"));
    return *symbol;
}

viaduct::Status open_slowly(const viaduct::OpenArgs& args, viaduct::NicContext** out) {
    // TimeLimit::agent_call is nine seconds. Only the test program has a clock that can be moved.
    using Move = void (*)(int64_t ns);
    const auto move_clock = reinterpret_cast<Move>(::dlsym(RTLD_DEFAULT, "viaduct_test_move_clock"));
    if (move_clock == nullptr) return viaduct::Status::broken;
    move_clock(10'000'000'000);
    return paramnet().data.open(args, out);
}

viaduct::Provider slow() {
    viaduct::Provider p = paramnet();
    p.name = "slow";
    p.data.open = open_slowly;
    return p;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 = slow();
