// SPDX-License-Identifier: BSD-2-Clause
// Memory that a process offers to others of its job on its host: anonymous, so that nothing stays when they end, and
// opened through /proc by what its maker has told. Neither the number of a process nor that of a descriptor says what
// it is: both are used again, and both mean something else in another PID namespace. So an offer names the file (device
// and inode), and the memory begins with a random mark that only the offer tells. What is not that memory is neither
// opened nor written. Slow path, any thread; no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/shm/segment.hpp"

namespace viaduct {

// Sent to the other processes as it is.
struct MemoryOffer {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t mark = 0;  // 0: nothing is offered
    int32_t process = 0;
    int32_t descriptor = -1;
};

// The user's layout has it in front. No other code writes it.
struct OfferedMark {
    uint64_t value;
};

// Memory with a mark. The offer holds while the segment has its descriptor. On failure both are empty.
Segment offer_memory(const char* label, size_t bytes, MemoryOffer* offer);

enum class Opened : uint8_t {
    ok,
    not_offered,
    no_proc,        // /proc is not there, or shows the processes of another PID namespace
    gone,           // the process has ended, or has closed the descriptor
    no_permission,  // to look at that process
    failed,         // no descriptor or no memory is left here, or a filter forbids a call
    other_file,     // the number of the process or of the descriptor stands for something else
    not_sealed,     // its owner could shrink it
    too_small,
    wrong_mark,
};

// Maps `bytes` of what is offered, without the descriptor. Never waits for another process: nothing but the memory
// itself is opened, and no FIFO or device. *memory is empty unless ok.
Opened open_offered(const MemoryOffer& offer, size_t bytes, Segment* memory);

// For messages: ends the sentence "the memory of process N cannot be opened: ".
const char* reason(Opened why);

// The process that made the offer has ended, or has given the memory up.
inline bool is_withdrawn(Opened why) { return why == Opened::gone || why == Opened::other_file; }

}  // namespace viaduct
