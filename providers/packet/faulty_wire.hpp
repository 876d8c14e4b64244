// SPDX-License-Identifier: BSD-2-Clause
// Fault injection behind a port, by seed: frames that leave are lost, damaged, doubled, delayed
// and overtaken, and the link goes down and up, as a plan says (core/fault/fault_plan.hpp). There is one plan
// for the whole port and one for each connection that has its own. Used by ports, under the engine's lock; a port
// without plans has none of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <vector>

#include "core/fault/fault_plan.hpp"

namespace viaduct::packet {

struct FaultCounters {
    uint64_t dropped = 0, corrupted = 0, duplicated = 0, reordered = 0, delayed = 0;
    uint64_t no_room = 0;  // frames lost because too many were held back
};

// Frames as their port keeps them.
class FrameKeeper {
public:
    virtual void* copy_of(void* frame) = 0;  // null: no memory
    virtual void free(void* frame) = 0;

protected:
    ~FrameKeeper() = default;
};

class FaultyWire {
public:
    explicit FaultyWire(FrameKeeper& keeper) : keeper_(keeper) {}
    FaultyWire(const FaultyWire&) = delete;
    FaultyWire& operator=(const FaultyWire&) = delete;

    static constexpr int64_t kNothing = INT64_MAX;
    static constexpr size_t kMostPlans = 64;

    ~FaultyWire();

    // Link 0: frames of all links that have no plan of their own. A plan that does nothing takes the one
    // there is away.
    void set_plan(uint32_t link, const FaultPlan&);
    bool has_plans() const { return !plans_.empty(); }

    // Takes a frame that link `source` sends, whose VI part is `frame`. What goes out now is in now[0] and
    // now[1]; how many.
    uint32_t pass(void* m, uint32_t source, std::span<std::byte> frame, int64_t time, void* now[2]);
    // A frame that was held back until now; null: none.
    void* release(int64_t time);
    // When the next one is due.
    int64_t held_until() const { return held_.empty() ? kNothing : held_.top().due; }

    const FaultCounters& counters() const { return counters_; }

private:
    struct Plan {
        uint32_t link;
        FaultPlan plan;
        FaultDice dice;
    };
    struct Held {
        int64_t due;
        uint64_t order;  // first in, first out among those of one time
        void* frame;
        bool operator>(const Held& other) const {
            return due != other.due ? due > other.due : order > other.order;
        }
    };

    Plan* plan_of(uint32_t link);
    void hold(void*, int64_t due);

    FrameKeeper& keeper_;
    std::vector<Plan> plans_;
    std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
    uint64_t order_ = 0;
    FaultCounters counters_;
};

}  // namespace viaduct::packet
