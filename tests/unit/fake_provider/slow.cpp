// SPDX-License-Identifier: BSD-2-Clause
// The default NIC, by a provider that takes longer to start its device than an agent has for its answers.
#include <dlfcn.h>
#include <unistd.h>

#include "viaduct/provider.hpp"

namespace {

const viaduct::Provider& paramnet() {
    static const auto* const symbol = static_cast<const viaduct::Provider*>(
        ::dlsym(::dlopen(VIADUCT_TEST_PARAMNET, RTLD_NOW | RTLD_LOCAL), "viaduct_provider_v1"));
    return *symbol;
}

viaduct::Status open_slowly(const viaduct::OpenArgs& args, viaduct::NicContext** out) {
    ::sleep(10);  // TimeLimit::agent_call is nine seconds
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
