// SPDX-License-Identifier: BSD-2-Clause
// The atomic operations of viaduct/ext.h, by this processor's own instructions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::paramnet {

// The first operand becomes the word's old value.
template <typename Word>
void change_word(uint64_t at, std::byte* operands, bool swaps) {
    Word operand;
    __builtin_memcpy(&operand, operands, sizeof operand);
    const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
    if (swaps) {
        Word expected;
        __builtin_memcpy(&expected, operands + sizeof operand, sizeof expected);
        word.compare_exchange_strong(expected, operand);
        operand = expected;
    } else {
        operand = word.fetch_add(operand);
    }
    __builtin_memcpy(operands, &operand, sizeof operand);
}

}  // namespace viaduct::paramnet
