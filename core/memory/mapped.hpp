// SPDX-License-Identifier: BSD-2-Clause
// Whether memory of this process is there, and may be touched. What another thread does next nobody sees.
#pragma once

#include <cstddef>

namespace viaduct {

// Looks at the mappings only, and starts nothing: a tenth of a microsecond.
// Permissions and files that have become shorter it does not see.
bool is_mapped(const void* at, size_t n);

// Whether loads and stores do not fault: a system call for each page. Changes nothing. Answers also for memory that the
// kernel does not let other processes copy (memfd_secret).
bool can_read(const void* at, size_t n);
bool can_write(void* at, size_t n);

}  // namespace viaduct
