// SPDX-License-Identifier: BSD-2-Clause
// The time slice of a thread, by sched_setattr(2). Debian's C library has no wrapper for it, and the kernel's header
// of its structure does not go together with <sched.h>.
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "core/wait/time_slice.hpp"

namespace viaduct {
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

// Any shorter slice is raised by the kernel to the shortest it grants (0.1 ms).
constexpr uint64_t kShortest = 1;

std::atomic<uint64_t> slice_before{0};  // 0: nothing was taken
uint64_t slice_taken = 0;
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

// As it was before, unless the program has set another one meanwhile.
void restore(pid_t thread, uint64_t before) {
    Attributes attributes;
    if (read_slice(thread, &attributes) && attributes.runtime == slice_taken)
        write_slice(thread, &attributes, before);
}

// Of a thread that takes none itself and has inherited ours, the child gets rid of it too. A program that is
// started without fork (posix_spawn, vfork) keeps what it inherits: nothing of ours runs there.
void restore_in_child() {
    if (const uint64_t before = slice_before.exchange(0); before != 0) restore(0, before);
}

}  // namespace

void take_short_slice() {
    Attributes attributes;
    if (slice_before != 0 || !read_slice(0, &attributes)) return;
    // Not a guarded static: a child that is forked meanwhile would wait for ever for a thread that it does not have.
    static constinit std::atomic<bool> watching{false};
    if (!watching.load()) watching.store(::pthread_atfork(nullptr, nullptr, restore_in_child) == 0);
    if (!watching.load()) return;
    const uint64_t before = attributes.runtime;
    if (!write_slice(0, &attributes, kShortest) || !read_slice(0, &attributes)) return;
    slice_taken = attributes.runtime;  // as the kernel has granted it
    taker = ::gettid();
    slice_before = before;
}

void give_slice_back() {
    const uint64_t before = slice_before;
    // Another thread may end the job; the thread that began it may have ended.
    if (before != 0 && ::syscall(SYS_tgkill, ::getpid(), taker, 0) == 0) restore(taker, before);
    // Not sooner: a child forked before this line gives back what it has inherited.
    slice_before = 0;
}

}  // namespace viaduct
