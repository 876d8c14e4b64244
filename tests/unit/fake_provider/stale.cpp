// SPDX-License-Identifier: BSD-2-Clause
// A provider of another ABI: must end as a rejection with a cure.
#include "fake_control.hpp"

namespace {
viaduct::Provider of_another_abi() {
    viaduct::Provider p = viaduct::fake::provider("stale", viaduct::fake::discover<1>);
    p.abi = viaduct::kProviderAbi + 41;
    return p;
}
}  // namespace

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 =
    of_another_abi();
