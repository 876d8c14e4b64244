// SPDX-License-Identifier: BSD-2-Clause
// Operations on a member's memory. In memory that several processes have mapped each element is changed by a processor
// atomic, or, when it is too wide or lies across its alignment, under a guard. Which of the two depends on nothing but
// the element's type and address, so both never meet on one element. In memory that others reach by system calls, which
// change nothing atomically, all elements are changed under the guard, by its owner too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/process/process_age.hpp"
#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi::rma {

// A lock held for a few loads and stores, in shared memory. It names its holder: when that is killed in between, the
// waiting process ends the job. All processes that use it have started before it is made: a later process that has got
// the number of the killed one is not taken for it.
class Guard {
public:
    void acquire();
    void release() { holder_.store(0, std::memory_order_release); }

private:
    std::atomic<int> holder_{0};
    const uint64_t made_ = boot_ticks();
};

// How elements are kept whole. Without a guard no other process reaches the memory now.
struct Exclusion {
    Guard* guard = nullptr;
    bool words = false;  // by processor atomics where that can be
};

class Guarded {
public:
    explicit Guarded(Guard* guard) : guard_(guard) {
        if (guard_ != nullptr) guard_->acquire();
    }
    ~Guarded() {
        if (guard_ != nullptr) guard_->release();
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

private:
    Guard* guard_;
};

// target[i] = target[i] op data[i] for `n` elements of a predefined type; the old values into `result` unless
// it is null. For MPI_NO_OP data is not read.
void apply(MPI_Op op, const Datatype& element, char* target, const char* data, char* result, size_t n,
           Exclusion exclusion);

// *result = *target; if that equals *compare, *target = *value. Of 1, 2, 4 or 8 bytes.
void compare_swap(size_t width, char* target, const char* value, const char* compare, char* result,
                  Exclusion exclusion);

}  // namespace viaduct::mpi::rma
