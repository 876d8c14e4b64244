// SPDX-License-Identifier: BSD-2-Clause
// A provider built with a longer table than ours: must be refused as it is loaded.
#include "fake_control.hpp"

namespace {

viaduct::Provider longer() {
    viaduct::Provider p = viaduct::fake::provider("larger", viaduct::fake::discover<1>);
    p.bytes += sizeof(void*);
    return p;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 = longer();
