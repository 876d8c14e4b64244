// SPDX-License-Identifier: BSD-2-Clause
// Memory of the program in another process of the host, reached by system calls without that process' help: what a
// window has of such a member. See foreign_access.hpp for the operations.
#pragma once

#include "core/process/foreign_memory.hpp"
#include "mpi-adi/engine/rma/ranges.hpp"

namespace viaduct::mpi::rma {

struct Window;

struct Foreign {
    Foreign(Window& of, const ForeignMemory& memory_of_member) : window(of), memory(memory_of_member) {}

    Window& window;
    ForeignMemory memory;
    Ranges attached;  // of a dynamic window, as this process saw it last
};

}  // namespace viaduct::mpi::rma
