// SPDX-License-Identifier: BSD-2-Clause
// A process of a job of several has the shortest time slice there is from MPI_Init to MPI_Finalize, and before and
// after that the one it came with.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "check.hpp"

namespace {

constexpr int kSkipped = 77;

struct Attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period;
    uint32_t least_utilization, most_utilization;
};

// 0: the kernel has none to tell.
Attributes own() {
    Attributes attributes{};
    if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
        attributes.policy != SCHED_OTHER) {
        attributes.slice = 0;
    }
    return attributes;
}

bool set(uint64_t slice) {
    Attributes attributes = own();
    attributes.slice = slice;
    return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr uint64_t kOdd = 1'234'567;  // nobody's default
    if (own().slice == 0 || !set(1)) {
        std::printf("SKIPPED: %s\n", own().slice == 0 ? "this kernel (before Linux 6.12?) has no time slices of one thread"
                                                      : std::strerror(errno));
        return kSkipped;
    }
    const uint64_t shortest = own().slice;
    set(kOdd);
    const Attributes before = own();
    EXPECT(before.slice == kOdd && shortest < kOdd);

    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Attributes during = own();
    EXPECT(during.slice == (size > 1 ? shortest : kOdd));
    EXPECT(during.nice == before.nice && during.policy == before.policy);
    int failed = report();  // finalizes
    if (own().slice != kOdd || own().nice != before.nice) {
        std::printf("after MPI_Finalize: a slice of %llu ns\n", static_cast<unsigned long long>(own().slice));
        failed = 1;
    }
    return failed;
}
