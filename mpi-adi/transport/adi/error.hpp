// SPDX-License-Identifier: BSD-2-Clause
// Errors of calls of the MPI device: a code for the program and a sentence for messages. Any thread.
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

// Stores the sentence for mpip_last_error(). The library that contains this transport defines it.
void keep_error(const char* sentence);
// Formats a sentence, stores it for mpip_last_error() and returns `code`.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

}  // namespace viaduct::adi
