// SPDX-License-Identifier: BSD-2-Clause
// Hints to files: those of the MPI standard that mean something here, and the names of ROMIO for collective
// buffering, because scripts around programs use them. Others are ignored, as the standard allows; so are
// values that make no sense.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "mpi-adi/engine/info.hpp"

namespace viaduct::mpi::io {

// Whether processes exchange data so that few of them make large accesses.
enum class Buffering : int32_t { automatic, enable, disable };

// What all processes of a file must see alike: that of rank 0 counts.
struct Tuning {
    Buffering writes = Buffering::automatic;  // romio_cb_write, collective_buffering
    Buffering reads = Buffering::automatic;   // romio_cb_read, collective_buffering
    int32_t nodes = 0;                // cb_nodes: processes that access the file, 0: by the number of hosts
    int64_t buffer_bytes = 16 << 20;  // cb_buffer_size: bytes that such a process handles at a time
};

struct Hints {
    Tuning tuning;
    mode_t permissions = 0666;  // file_perm, octal
    std::string access_style;   // kept for MPI_File_get_info

    void take(const Info& given);
    // All that is in use.
    void give(Info& out) const;
};

}  // namespace viaduct::mpi::io
