// SPDX-License-Identifier: BSD-2-Clause
// The fake provider as a loadable object: two NICs.
#include "fake_control.hpp"

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 =
    viaduct::fake::provider("fake", viaduct::fake::discover<2>);
