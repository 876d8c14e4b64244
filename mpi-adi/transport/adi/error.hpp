// SPDX-License-Identifier: BSD-2-Clause
// How calls of the device fail: a code for the program and a sentence for people. Any thread.
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

// Keeps the sentence for mpip_last_error(), of the library that carries this module.
void keep_error(const char* sentence);
// Keeps the sentence for mpip_last_error() and gives the code.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

}  // namespace viaduct::adi
