// SPDX-License-Identifier: BSD-2-Clause
// acenic: VI over Ethernet through a DPDK port. This file is its table of operations.
#include "providers/acenic/configured_port.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::acenic {

namespace {

constexpr Provider make_provider() {
    Provider p{};
    p.name = "acenic";
    p.description = "VI over Ethernet, emulated on the host, through a DPDK port";
    p.version = 1;

    p.control.discover = discover;

    p.data = packet::common_data();
    p.data.open = open;
    return p;
}

}  // namespace

}  // namespace viaduct::acenic

extern "C" __attribute__((visibility("default"))) constexpr viaduct::Provider viaduct_provider_v1 =
    viaduct::acenic::make_provider();
