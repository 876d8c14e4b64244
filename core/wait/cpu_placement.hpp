// SPDX-License-Identifier: BSD-2-Clause
// CPU placement: on which processor each process of a group ran last, where the processes wait for each other. Where
// there are more processes than processors, a process that waits for one on its own processor has to yield at once,
// because the other one cannot run before. A process on another processor may be running now, so it is worth polling
// for it. This is only advice: a process that computes may have been moved since, and what another process writes here
// can only cost time. Bound: a wrong answer delays the message by one yield. Off: no memory is made, and every answer
// is no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/process/offered_memory.hpp"
#include "core/shm/segment.hpp"

namespace viaduct {

class CpuPlacement {
public:
    // The memory, by one process of the node, and its name there for the others ("": none could be had).
    // Process `own` of `count`.
    bool create(size_t own, size_t count);
    std::string name() const;
    // The memory of that name. False, and no process has a place, where it is not to be had or of something else.
    bool open(const std::string& name, size_t own, size_t count);
    void leave();

    // Tells where the calling thread is, and answers whether another process was last seen on the same
    // processor. Called by a waiting thread: each call tells the others where it is.
    bool shared_with(size_t other);

private:
    struct alignas(64) Place {
        std::atomic<uint32_t> cpu;  // number of the processor, and 1
    };
    static_assert(std::atomic<uint32_t>::is_always_lock_free);

    // The mark has the line in front.
    static size_t bytes_for(size_t count) { return sizeof(Place) * (count + 1); }
    void place(size_t own, size_t count);

    Segment segment_;
    MemoryOffer offer_;
    Place* places_ = nullptr;
    size_t own_ = 0;
    size_t count_ = 0;
};

}  // namespace viaduct
