// SPDX-License-Identifier: BSD-2-Clause
// A process of a job of several has the shortest time slice there is from MPI_Init to MPI_Finalize, and before and
// after that the one it came with, as its children have; unless the program sets another one meanwhile.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

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

constexpr uint64_t kOdd = 1'234'567, kOther = 2'345'678;  // no default

// What a forked process finds.
bool child_has(uint64_t slice) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(own().slice == slice ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

void in_thread(const std::function<void()>& what) { std::thread(what).join(); }

// The world model: forked processes have back what was there before.
void world(uint64_t expected, int* argc, char*** argv) {
    const Attributes before = own();
    MPI_Init(argc, argv);
    EXPECT(own().slice == expected);
    EXPECT(own().nice == before.nice && own().policy == before.policy);
    EXPECT(child_has(kOdd));
    in_thread([] { EXPECT(child_has(kOdd)); });  // of a thread that has inherited it
    EXPECT(own().slice == expected);             // a child's own
}

// What the program sets meanwhile is its own, also in its children.
void kept(uint64_t expected, int* argc, char*** argv) {
    MPI_Init(argc, argv);
    EXPECT(own().slice == expected);
    EXPECT(set(kOther) && child_has(kOther));
}

// Sessions that one thread opens and another one closes: it is the first one's that comes back, each time.
void session(uint64_t expected) {
    for (int round = 0; round < 2; round++) {
        MPI_Session one = MPI_SESSION_NULL;
        EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one) == MPI_SUCCESS);
        EXPECT(own().slice == expected);
        in_thread([&] {
            set(kOther);
            EXPECT(MPI_Session_finalize(&one) == MPI_SUCCESS);
            EXPECT(own().slice == kOther);
        });
        EXPECT(own().slice == kOdd);
    }
}

// The thread that opened it has ended before it is closed.
void ended_thread(uint64_t expected) {
    MPI_Session one = MPI_SESSION_NULL;
    in_thread([&] {
        set(kOdd);
        EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one) == MPI_SUCCESS);
        EXPECT(own().slice == expected);
    });
    EXPECT(own().slice == kOdd);
    EXPECT(MPI_Session_finalize(&one) == MPI_SUCCESS);
    EXPECT(own().slice == kOdd);
}

}  // namespace

// slices [kept | session | ended] SIZE: in a job of that many processes.
int main(int argc, char** argv) {
    if (own().slice == 0 || !set(1)) {
        std::printf("SKIPPED: %s\n", own().slice == 0
                                         ? "this kernel (before Linux 6.12?) has no time slices of one thread"
                                         : std::strerror(errno));
        return kSkipped;
    }
    const std::string which = argc > 2 ? argv[1] : "world";
    const bool alone = argc < 2 || std::string(argv[argc - 1]) == "1";
    const uint64_t shortest = own().slice;
    set(kOdd);
    EXPECT(own().slice == kOdd && shortest < kOdd);
    const uint64_t expected = alone ? kOdd : shortest;
    uint64_t at_the_end = kOdd;
    if (which == "session") {
        session(expected);
    } else if (which == "ended") {
        ended_thread(expected);
    } else if (which == "kept") {
        kept(expected, &argc, &argv);
        at_the_end = kOther;
    } else {
        world(expected, &argc, &argv);
    }
    const bool of_sessions = which == "session" || which == "ended";
    int failed = of_sessions ? wrong : report();  // finalizes
    if (of_sessions && failed == 0) std::puts("No Errors");
    if (own().slice != at_the_end) {
        std::printf("at the end a slice of %llu ns\n", static_cast<unsigned long long>(own().slice));
        failed = 1;
    }
    return failed;
}
