// SPDX-License-Identifier: BSD-2-Clause
// The parameters of the device: environment variables, read once, one table for reading, help and printing.
#pragma once

#include <cstddef>

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
    slots_after,
    shm_ring,
    tcp_interfaces,
    tcp_buffer,
    on_demand,
    via_nics,
    rail_patience,
    count_
};

// Value in force. A number that cannot be read, or lies outside the row's range, counts as not given.
long param_number(Param);
const char* param_text(Param);
// Whether the environment gave it.
bool param_given(Param);

}  // namespace viaduct::adi
