// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/counters.hpp"

namespace viaduct::adi {
mpip_counters counters[NPROTO];
}

extern "C" const struct mpip_counters* mpip_counters_of(int proto) {
    return proto >= 0 && proto < NPROTO ? &viaduct::adi::counters[proto] : nullptr;
}
