// SPDX-License-Identifier: BSD-2-Clause
// Where the ranks of a node sit: on which processor each of them ran last. Where ranks are more than
// processors, whoever waits for a rank of his own processor has to give way at once, for until then that one
// cannot run; one that sits elsewhere may be running at this moment, and is worth a look. Only advice: a rank
// that computes may have been moved since, and nobody is harmed by what another process writes here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/shm/segment.hpp"

namespace viaduct::mpi {

class Seats {
public:
    // The memory, by one process of the node, and its name there for the others ("": none could be had).
    // Process `own` of `count`.
    bool create(size_t own, size_t count);
    std::string name() const;
    // The memory of that name. False, and nobody has a seat, where it is not to be had or of something else.
    bool open(const std::string& name, size_t own, size_t count);
    void leave();

    // Tells where the calling thread is, and answers whether another process was last seen on the same
    // processor. To be asked by who waits: each answer tells the others where to look.
    bool shared_with(size_t other);

private:
    struct Head {
        uint64_t token;  // that of the name: a file may be of somebody else by the time it is opened
    };
    struct alignas(64) Seat {
        std::atomic<uint32_t> taken;  // number of the processor, and 1
    };
    static_assert(std::atomic<uint32_t>::is_always_lock_free);

    static size_t bytes_for(size_t count) { return sizeof(Seat) * (count + 1); }
    void place(size_t own, size_t count);

    Segment segment_;
    uint64_t token_ = 0;
    Seat* seats_ = nullptr;
    size_t own_ = 0;
    size_t count_ = 0;
};

}  // namespace viaduct::mpi
