// SPDX-License-Identifier: BSD-2-Clause
// Functions of the C library under the names that it gives them, for use inside of one shared library (spec/compat L1).
//
// A program may own such a name: void send(int rank), void write(char* name, double what). The linker then exports the
// program's symbol, since a library refers to it, and the dynamic linker binds every library of the process to the
// program's. A shared library of ours is linked with this file (cmake/ViaductTargets.cmake), and its version script
// hides these names: its own calls, and no others, come here. They go on to the C library, whose functions are looked
// up in that library alone, when ours is loaded. A call costs two instructions more. All else is as the C library does
// it: errno, the vDSO, the layout of records, the system calls that a machine has. Only that none is a cancellation
// point: a thread that is cancelled inside of the library would leave its locks taken (core/sync/cancellation.hpp).
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#ifdef VIADUCT_NAMES_OF_FILES
#define NAME_OF_FILES(name) NAME(name)
#else
#define NAME_OF_FILES(name)
#endif

namespace {

enum Index {
#define NAME(name) of_##name,
#include "core/libc/names.def"
#undef NAME
    of_syscall,
    kNames
};

constexpr const char* kName[kNames] = {
#define NAME(name) #name,
#include "core/libc/names.def"
#undef NAME
    "syscall",
};

[[noreturn]] void is_missing() {
    std::fputs("viaduct: this system's C library has not a function that the library was built for\n", stderr);
    std::abort();
}

void* bound[kNames];

// Of the names bound, those that are cancellation points of the C library (pthreads(7)) or call one. Around these the
// state of the thread is changed.
constexpr std::string_view kCancellationPoints[] = {
    "accept4", "clock_nanosleep", "close", "connect", "epoll_wait", "fallocate", "fallocate64", "fcntl", "fcntl64",
    "fopen64", "fsync", "getaddrinfo", "getifaddrs", "getrandom", "mkostemp", "mkostemp64", "msync", "nanosleep",
    "open", "open64", "poll", "ppoll", "pread", "pread64", "pwrite", "pwrite64", "read", "recv", "recvfrom",
    "recvmmsg", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto", "usleep", "waitpid", "write"};

constexpr bool is_cancellation_point(std::string_view name) {
    for (const std::string_view one : kCancellationPoints)
        if (one == name) return true;
    return false;
}

// Before all other constructors of the library.
[[gnu::constructor(101)]] void bind_names() {
    void* const libc = ::dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    for (int i = 0; i < kNames; ++i) {
        void* const found = libc != nullptr ? ::dlsym(libc, kName[i]) : nullptr;
        bound[i] = found != nullptr ? found : reinterpret_cast<void*>(&is_missing);
    }
}

}  // namespace

// Their C++ names are others: headers declare some of these functions with other parameters, or as inline functions.
//
// Arguments and the answer go through as they are: each is an integer or a pointer, and lies in a register or on the
// stack where its place says. None of these functions has more arguments than are passed on, and no function
// reads what is passed on beyond its own. A 64-bit word takes two places on ILP32.
extern "C" {

#ifdef __LP64__
using Answer = long;
#define PARAMETERS long a, long b, long c, long d, long e, long f
#define ARGUMENTS a, b, c, d, e, f
#else
using Answer = long long;
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g, long h
#define ARGUMENTS a, b, c, d, e, f, g, h
#endif
// On some machines a function with "..." finds its arguments only where it is called as one.
using Function = Answer(long, ...);

#define NAME(name)                                                            \
    Answer viaduct_libc_##name(PARAMETERS) asm(#name);                        \
    Answer viaduct_libc_##name(PARAMETERS) {                                  \
        auto* const function = reinterpret_cast<Function*>(bound[of_##name]); \
        if constexpr (is_cancellation_point(#name)) {                         \
            int before = PTHREAD_CANCEL_ENABLE;                               \
            ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);        \
            const Answer answer = function(ARGUMENTS);                        \
            ::pthread_setcancelstate(before, nullptr);                        \
            return answer;                                                    \
        }                                                                     \
        return function(ARGUMENTS);                                           \
    }
#include "core/libc/names.def"
#undef NAME

// The number of the call and six arguments.
long viaduct_libc_syscall(long number, long a, long b, long c, long d, long e, long f) asm("syscall");
long viaduct_libc_syscall(long number, long a, long b, long c, long d, long e, long f) {
    return static_cast<long>(reinterpret_cast<Function*>(bound[of_syscall])(number, a, b, c, d, e, f));
}

}  // extern "C"

#ifdef __GLIBCXX__
// The clocks of the C++ run-time library call clock_gettime by its name.
namespace std::chrono {

namespace {

nanoseconds reading(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

}  // namespace

steady_clock::time_point steady_clock::now() noexcept { return time_point(reading(CLOCK_MONOTONIC)); }

system_clock::time_point system_clock::now() noexcept {
    return time_point(duration_cast<duration>(reading(CLOCK_REALTIME)));
}

}  // namespace std::chrono
#endif
