// SPDX-License-Identifier: BSD-2-Clause
// Copies between our memory and that of another process by one system call (process_vm_readv,
// process_vm_writev), where the system permits it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "providers/paramnet/guarded_call.hpp"

namespace viaduct::paramnet {

// True when the value lies at that address of that process: the pid is right and we may reach its memory.
bool probe_process(int pid, uint64_t address, uint64_t value);

// fault: memory may not be touched any more; unreached: the system finds none on one of the sides; ended: the
// process is not there; forbidden: the system does not let us make such calls, or not of that process
enum class CrossResult : uint8_t { ok, fault, unreached, ended, forbidden };

// Moves the next n bytes of the cursor to, or from, contiguous memory of the other process, while the guard
// permits it. Of what is written the last line of the cache is written last: a program that watches the last word
// finds all of the rest.
CrossResult cross_write(int pid, SegmentCursor& from, uint64_t address, uint64_t n, const Guard&);
CrossResult cross_read(int pid, SegmentCursor& to, uint64_t address, uint64_t n, const Guard&);

}  // namespace viaduct::paramnet
