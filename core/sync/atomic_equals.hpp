// SPDX-License-Identifier: BSD-2-Clause
// Compares an atomic word with a value in one instruction. Compilers load atomic words into a register before
// they compare, which costs a hot path a dozen instructions a message.
#pragma once

#include <atomic>
#include <cstdint>

// Sanitizers have to see each access.
#if defined(__x86_64__) && !defined(VIADUCT_TSAN) && !defined(__SANITIZE_ADDRESS__)
#define VIADUCT_COMPARES_IN_MEMORY 1
#else
#define VIADUCT_COMPARES_IN_MEMORY 0
#endif

namespace viaduct {

#if VIADUCT_COMPARES_IN_MEMORY
namespace detail {
template <class Word, class Value>
[[gnu::always_inline]] inline bool compare_in_memory(const Word& word, Value value) {
    static_assert(sizeof word == sizeof value && (sizeof value == 4 || sizeof value == 8));
    bool same;
    if constexpr (sizeof value == 8) {
        asm volatile("cmpq %2, %1" : "=@cce"(same) : "m"(word), "re"(value) : "cc");
    } else {
        asm volatile("cmpl %2, %1" : "=@cce"(same) : "m"(word), "ri"(value) : "cc");
    }
    return same;
}
}  // namespace detail
#endif

// A relaxed load and a comparison.
template <class Word>
[[gnu::always_inline]] inline bool atomic_equals(const std::atomic<Word>& word, Word value) {
#if VIADUCT_COMPARES_IN_MEMORY
    return detail::compare_in_memory(word, value);
#else
    return word.load(std::memory_order_relaxed) == value;
#endif
}

// The same with an acquire load: what follows in the program is read later.
template <class Word>
[[gnu::always_inline]] inline bool atomic_equals_acquire(const std::atomic<Word>& word, Word value) {
#if VIADUCT_COMPARES_IN_MEMORY
    const bool same = detail::compare_in_memory(word, value);
    std::atomic_signal_fence(std::memory_order_acquire);  // the processor keeps loads in order
    return same;
#else
    return word.load(std::memory_order_acquire) == value;
#endif
}

// Of two words, the second right behind the first, which is aligned as both together: the first has the lower
// half of `value` and the second the upper one. Acquire loads, where possible a single one.
[[gnu::always_inline]] inline bool atomic_pair_equals_acquire(const std::atomic<uint32_t>& first,
                                                              const std::atomic<uint32_t>& second, uint64_t value) {
#if VIADUCT_COMPARES_IN_MEMORY
    (void)second;
    typedef uint64_t __attribute__((may_alias)) Both;
    const bool same = detail::compare_in_memory(*reinterpret_cast<const Both*>(&first), value);
    std::atomic_signal_fence(std::memory_order_acquire);
    return same;
#else
    return first.load(std::memory_order_acquire) == static_cast<uint32_t>(value) &&
           second.load(std::memory_order_acquire) == static_cast<uint32_t>(value >> 32);
#endif
}

}  // namespace viaduct
