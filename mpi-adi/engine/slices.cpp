// SPDX-License-Identifier: BSD-2-Clause
// The time slice of a thread, by sched_setattr(2). Debian's C library has no wrapper for it, and the kernel's header
// of its structure does not go together with <sched.h>.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "mpi-adi/engine/company.hpp"

namespace viaduct::mpi {
namespace {

struct Attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;  // of SCHED_OTHER the slice, in ns
    uint64_t deadline, period;
    uint32_t least_utilization, most_utilization;
};
static_assert(sizeof(Attributes) == 56);

// Any shorter wish is raised by the kernel to the shortest it grants (0.1 ms).
constexpr uint64_t kShortest = 1;

uint64_t slice_before = 0;  // 0: nothing was taken
pid_t taker = 0;

bool read_slice(pid_t thread, Attributes* attributes) {
    *attributes = {};
    return ::syscall(SYS_sched_getattr, thread, attributes, sizeof *attributes, 0) == 0 &&
           attributes->policy == SCHED_OTHER && attributes->runtime != 0;
}

// The other attributes are given as they are.
bool write_slice(pid_t thread, Attributes* attributes, uint64_t slice) {
    attributes->runtime = slice;
    return ::syscall(SYS_sched_setattr, thread, attributes, 0) == 0;
}

}  // namespace

void take_short_slice() {
    Attributes attributes;
    if (slice_before != 0 || !read_slice(0, &attributes)) return;
    const uint64_t before = attributes.runtime;
    if (!write_slice(0, &attributes, kShortest)) return;
    slice_before = before;
    taker = ::gettid();
}

void give_slice_back() {
    if (slice_before == 0) return;
    // Whoever ends the job may be another thread; the one that began it may be gone.
    Attributes attributes;
    if (::syscall(SYS_tgkill, ::getpid(), taker, 0) == 0 && read_slice(taker, &attributes))
        write_slice(taker, &attributes, slice_before);
    slice_before = 0;
}

}  // namespace viaduct::mpi
