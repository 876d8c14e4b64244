// SPDX-License-Identifier: BSD-2-Clause
// Ports: where a process of this job takes calls of other jobs. The name of a port has the addresses of its listeners
// and a secret, by which caller and called prove to each other that they have the name, as two ranks over tcp do; so
// a name is to be kept from processes that must not connect.
#pragma once

#include <chrono>
#include <string>

#include "core/shm/fd.hpp"
#include "mpi-adi/engine/dynamic/processes.hpp"

namespace viaduct::mpi {

// A stream to the other job, and what only the two of them have.
struct Contact {
    Fd socket;
    JobSecret secret = {};
};

// Listens; an MPI error class. The name has at most MPI_MAX_PORT_NAME - 1 characters.
int open_port(std::string* name);
// MPI_ERR_PORT: this process has no such port open. Calls that wait at it end.
int close_port(const std::string& name);

// Waits for the next caller at a port of this process, without limit of time.
int accept_call(const std::string& name, Contact* made);
// Calls at a port, until it is answered. MPI_ERR_PORT when it is closed, is no port, or does not answer in time.
int call_port(const std::string& name, std::chrono::nanoseconds limit, Contact* made);

}  // namespace viaduct::mpi
