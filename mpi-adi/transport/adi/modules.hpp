// SPDX-License-Identifier: BSD-2-Clause
// Which modules there are: those of the library (modules.def) and those in files of their own.
#pragma once

#include <string>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

struct Module {
    const char* name;
    void (*bind)(const mpip_device*, struct protocol*);
};

// By number. The first call loads what the folder has, and nothing changes afterwards.
const std::vector<Module>& modules();
// Files that are no module for this library, each with why.
const std::vector<std::string>& refused_modules();

}  // namespace viaduct::adi
