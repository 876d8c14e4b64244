// SPDX-License-Identifier: BSD-2-Clause
// What the tools interface shows: control variables are the device's parameters (mpip_params), performance
// variables its counters and some words on the job. All are there from the beginning, and none is bound to an
// object.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"

// A handle is a pointer to this; its values are 0, 1, 2, …
struct MPIR_T_enum_s {
    std::string name;
    std::vector<std::string> items;
};

namespace viaduct::mpi::tool {

// Parameters in the order of mpip_params.
struct Control {
    const mpip_param* row;
    bool is_number() const { return row->pa_low != 0 || row->pa_high != 0; }
};
std::vector<Control> controls();

struct Performance {
    std::string name;
    std::string description;
    int var_class;
    MPI_Datatype datatype;  // MPI_INT or MPI_UNSIGNED_LONG_LONG
    MPI_T_enum items;       // MPI_T_ENUM_NULL for all but states
    int protocol;           // whose it is; -1: the engine's
    // One of the two tells the value, under the engine's lock.
    uint64_t mpip_counters::*counter;
    uint64_t (*value)();

    // Counters begin at 0 for each handle, and are started and stopped; the others always are what they are.
    bool counts() const { return var_class == MPI_T_PVAR_CLASS_COUNTER; }
    uint64_t now() const;
};
const std::vector<Performance>& performances();

// What the job is doing, as the value of the variable job_stage.
MPIR_T_enum_s& stage_enum();

}  // namespace viaduct::mpi::tool
