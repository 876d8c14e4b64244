// SPDX-License-Identifier: BSD-2-Clause
// The parameters of the device: names for the section [mpi] of the configuration (core/config/config.hpp), read once.
// What is allowed and where a value comes from is known there. In the environment each has the prefix CMPI_.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace viaduct::adi {

enum class Param : size_t {
    protocol,
    connect_timeout,
    close_timeout,
    via_device,
    prepost_depth,
    vbuf_spares,
    vbuf_max,
    eager_limit,
    rendezvous,
    both_from,
    r3_limit,
    gap_piece,
    rendezvous_extra,
    eager_ring_after,
    shm_ring,
    tcp_interfaces,
    tcp_buffer,
    on_demand,
    via_nics,
    rail_timeout,
    wait_learning,
    node_collectives,
    transports,
    window_access,
    name_folder,
    progress,
    progress_cpus,
    robust,
    check,
    count_
};

// Value in force.
long param_number(Param);
// Whether the environment and the files ask for the debugging mode now. Other than param_number it fixes no value.
bool is_check_asked_for();
const char* param_text(Param);
// Whether it is another one than the default, or the same by a file, the environment or the program.
bool param_given(Param);
bool param_from_environment(Param);
// Variables whose values are not allowed, each with what is; empty: none. A job does not begin with them.
std::string wrong_variables();
// What else was found wrong, for mpip_param_problem.
const std::vector<std::string>& param_problems();
// A text that is of no use here is dropped, and told as a problem.
void use_default(Param, const std::string& why);

}  // namespace viaduct::adi
