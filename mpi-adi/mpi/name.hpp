// SPDX-License-Identifier: BSD-2-Clause
// Strings that cross the MPI interface: bounded, ended by a zero byte.
#pragma once

#include <mpi.h>

#include <cstring>
#include <string>

namespace viaduct::mpi {

inline std::string take_name(const char* name) { return {name, strnlen(name, MPI_MAX_OBJECT_NAME - 1)}; }

inline void give_name(const std::string& name, char* out, int* length) {
    std::memcpy(out, name.c_str(), name.size() + 1);
    *length = int(name.size());
}

}  // namespace viaduct::mpi
