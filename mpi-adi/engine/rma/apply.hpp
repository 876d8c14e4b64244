// SPDX-License-Identifier: BSD-2-Clause
// Operations on a member's memory. In memory that several processes reach directly each element is changed by
// a processor atomic, or, when it is too wide or lies across its alignment, under a guard. Which of the two
// depends on nothing but the element's type and address, so both never meet on one element.
#pragma once

#include <atomic>
#include <cstddef>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi::rma {

// A lock held for a few loads and stores, in shared memory. It names its holder: when that is killed in
// between, the waiting process ends the job.
class Guard {
public:
    void acquire();
    void release() { holder_.store(0, std::memory_order_release); }

private:
    std::atomic<int> holder_{0};
};

// target[i] = target[i] op data[i] for `n` elements of a predefined type; the old values into `result` unless
// it is null. With a guard the memory is shared; without, nobody else reaches it now. For MPI_NO_OP data is
// not read.
void apply(MPI_Op op, const Datatype& element, char* target, const char* data, char* result, size_t n,
           Guard* guard);

// *result = *target; if that equals *compare, *target = *value. Of 1, 2, 4 or 8 bytes.
void compare_swap(size_t width, char* target, const char* value, const char* compare, char* result,
                  Guard* guard);

}  // namespace viaduct::mpi::rma
