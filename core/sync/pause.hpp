// SPDX-License-Identifier: BSD-2-Clause
// One hint to the processor that this is a polling loop.
#pragma once

namespace viaduct {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // a real delay on ARM, unlike yield
#endif
}

}  // namespace viaduct
