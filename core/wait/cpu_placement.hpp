// SPDX-License-Identifier: BSD-2-Clause
// CPU placement: on which processor each of some processes that wait for each other ran last. Where they are more than
// processors, one that waits for another one of its own processor has to give way at once, for until then that one
// cannot run; one that is elsewhere may be running at this moment, and is worth a look. Only advice: a process
// that computes may have been moved since, and what another process writes here can only cost time.
// Bound: a wrong answer costs the message one yield. Off: no memory is made, and every answer is no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

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
    struct Head {
        uint64_t token;  // that of the name: a file may be another one by the time it is opened
    };
    struct alignas(64) Place {
        std::atomic<uint32_t> cpu;  // number of the processor, and 1
    };
    static_assert(std::atomic<uint32_t>::is_always_lock_free);

    static size_t bytes_for(size_t count) { return sizeof(Place) * (count + 1); }
    void place(size_t own, size_t count);

    Segment segment_;
    uint64_t token_ = 0;
    Place* places_ = nullptr;
    size_t own_ = 0;
    size_t count_ = 0;
};

}  // namespace viaduct
