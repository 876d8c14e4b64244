// SPDX-License-Identifier: BSD-2-Clause
// Whether a range of this process' memory may be read or written. The answer holds for the moment of the call: another
// thread may unmap the range afterwards. Any thread; system calls, no lock, no state. errno is left as it was.
#pragma once

#include <cstddef>

namespace viaduct {

// Whether a load (can_read) or a store (can_write) of any byte works without a fault, so that holes, permissions and a
// mapped file that has become shorter are noticed: half a microsecond for each page. Memory is left as it is. They also
// work for memory that the kernel hides from other processes (memfd_secret).
bool can_read(const void* at, size_t n);
bool can_write(void* at, size_t n);

}  // namespace viaduct
