// SPDX-License-Identifier: BSD-2-Clause
// Hints to the processor: that this is a polling loop, and what will be written.
#pragma once

namespace viaduct {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // a real delay on ARM, unlike yield
#endif
}

// A line that will be written soon and that another processor may hold.
inline void prefetch_for_writing(const void* address) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

}  // namespace viaduct
