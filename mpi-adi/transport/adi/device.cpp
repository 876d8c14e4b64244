// SPDX-License-Identifier: BSD-2-Clause
// What all modules of a process share, the loaded ones too: tables, upcalls, counters, the last error.
#include "mpi-adi/transport/adi/device.hpp"

#include <cstdio>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::adi {

mpip_counters counters[NPROTO];

namespace {
thread_local char last_error[768];
}

void keep_error(const char* sentence) { std::snprintf(last_error, sizeof last_error, "%s", sentence); }

}  // namespace viaduct::adi

extern "C" {

struct protocol mpip_protocols[NPROTO];
struct mpip_upcalls mpip_up;

const char* mpip_last_error(void) { return viaduct::adi::last_error; }

const struct mpip_counters* mpip_counters_of(int proto) {
    return proto >= 0 && proto < NPROTO ? &viaduct::adi::counters[proto] : nullptr;
}
}

namespace viaduct::adi {

const mpip_device device = {CMPI_ADI_VERSION, mpip_protocols, counters, &mpip_up, keep_error, mpip_params};

}  // namespace viaduct::adi
