// SPDX-License-Identifier: BSD-2-Clause
// The look and the call as one restartable sequence: whenever the kernel takes the processor from us between
// the two, it lets us go on at the look. The sequence ends where the call begins, so that the call itself is
// never repeated. See guarded_call.hpp.
#include "providers/paramnet/guarded_call.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define VIADUCT_RSEQ 1
#else
#define VIADUCT_RSEQ 0
#endif

namespace viaduct::paramnet {

namespace {

bool permitted(const Guard& g) {
    return g.closed->load(std::memory_order_acquire) == 0 &&
           g.handle->load(std::memory_order_acquire) == g.expected &&
           g.life->load(std::memory_order_acquire) == g.expected_life;
}

long plain_call(const Guard& g, long number, long pid, const void* local, long local_count,
                const void* remote, long remote_count) {
    if (!permitted(g)) return kNotPermitted;
    const long result = ::syscall(number, pid, local, local_count, remote, remote_count, 0L);
    return result < 0 ? -errno : result;
}

#if VIADUCT_RSEQ

constexpr long kInterrupted = -4096;

// One attempt. The four bytes before the place to go on at are the signature that the C library registers on
// this processor, as part of an instruction that is never executed. Nothing may be called between the filling of the
// registers named here and the sequence, not even by a sanitizer: so everything else is loaded before.
__attribute__((no_sanitize_thread)) long attempt(const Guard& g, uint64_t* area, long number, long pid,
                                                 const void* local, long local_count, const void* remote,
                                                 long remote_count) {
    register const void* fourth asm("r10") = remote;
    register long fifth asm("r8") = remote_count;
    register long sixth asm("r9") = 0;
    long result = number;
    asm volatile(
        ".pushsection viaduct_rseq, \"aw\"\n\t"
        ".balign 32\n"
        "9:\n\t"
        ".long 0, 0\n\t"  // version, flags
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        "leaq 9b(%%rip), %%rcx\n\t"
        "movq %%rcx, %[area]\n"
        "1:\n\t"
        "movq %[closed], %%rcx\n\t"
        "cmpl $0, (%%rcx)\n\t"
        "jne 5f\n\t"
        "movq %[handle], %%rcx\n\t"
        "movl %[expected], %%r11d\n\t"
        "cmpl %%r11d, (%%rcx)\n\t"
        "jne 5f\n\t"
        "movq %[life], %%rcx\n\t"
        "movl %[expected_life], %%r11d\n\t"
        "cmpl %%r11d, (%%rcx)\n\t"
        "jne 5f\n\t"
        "syscall\n"
        "2:\n\t"
        "jmp 6f\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        "4:\n\t"
        "movq %[interrupted], %%rax\n\t"
        "jmp 6f\n"
        "5:\n\t"
        "movq %[refused], %%rax\n"
        "6:\n\t"
        "movq $0, %[area]\n"  // the descriptor above goes away with this library
        : "+a"(result), [area] "=m"(*area)
        : "D"(pid), "S"(local), "d"(local_count), "r"(fourth), "r"(fifth),
          "r"(sixth), [closed] "m"(g.closed), [handle] "m"(g.handle), [expected] "m"(g.expected), [life] "m"(g.life),
          [expected_life] "m"(g.expected_life), [interrupted] "i"(kInterrupted), [refused] "i"(kNotPermitted)
        : "rcx", "r11", "cc", "memory");
    return result;
}

uint64_t* sequence_area() {
    return reinterpret_cast<uint64_t*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset +
                                       offsetof(struct rseq, rseq_cs));
}

#endif

}  // namespace

bool guard_is_tight() {
#if VIADUCT_RSEQ
    return __rseq_size != 0;
#else
    return false;
#endif
}

long guarded_call(const Guard& g, long number, long pid, const void* local, long local_count,
                  const void* remote, long remote_count) {
#if VIADUCT_RSEQ
    if (guard_is_tight()) {
        uint64_t* const area = sequence_area();
        long result = kInterrupted;
        while (result == kInterrupted)
            result = attempt(g, area, number, pid, local, local_count, remote, remote_count);
        return result;
    }
#endif
    return plain_call(g, number, pid, local, local_count, remote, remote_count);
}

}  // namespace viaduct::paramnet
