// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/faulty_wire.hpp"

#include <algorithm>

#include "providers/wire/format.hpp"

namespace viaduct::packet {

namespace {

// A frame that is overtaken waits so long: longer than the wire protocol takes for mere disorder, and shorter.
constexpr uint32_t kLongestOvertaking = 200'000;
// Held frames come from the port's pool, which must not run dry.
constexpr size_t kMostHeld = 1024;

// The part behind the header, where it does most harm; the header of a frame that has nothing else.
void damage(std::span<std::byte> frame, FaultDice& dice) {
    const uint32_t from = frame.size() > wire::kHeaderBytes ? wire::kHeaderBytes : 0;
    const uint32_t at = from + dice.below(static_cast<uint32_t>(frame.size()) - from);
    frame[at] ^= std::byte{1} << dice.below(8);
}

}  // namespace

FaultyWire::~FaultyWire() {
    for (; !held_.empty(); held_.pop()) keeper_.free(held_.top().frame);
}

void FaultyWire::set_plan(uint32_t link, const FaultPlan& plan) {
    std::erase_if(plans_, [&](const Plan& p) { return p.link == link; });
    if (!plan.active()) return;
    // Links end without telling this object: the plan of one that ended long ago makes room.
    if (plans_.size() == kMostPlans) plans_.erase(plans_.begin() + (plans_.front().link == 0 ? 1 : 0));
    plans_.push_back({link, plan, FaultDice(plan.seed)});
}

FaultyWire::Plan* FaultyWire::plan_of(uint32_t link) {
    Plan* of_all = nullptr;
    for (Plan& p : plans_) {
        if (p.link == link) return &p;
        if (p.link == 0) of_all = &p;
    }
    return of_all;
}

void FaultyWire::hold(void* m, int64_t due) {
    if (held_.size() < kMostHeld) return held_.push({due, order_++, m});
    ++counters_.no_room;
    keeper_.free(m);
}

uint32_t FaultyWire::pass(void* m, uint32_t source, std::span<std::byte> frame, int64_t time,
                          void* now[2]) {
    Plan* const p = plan_of(source);
    now[0] = m;
    if (p == nullptr) return 1;
    if (p->plan.is_link_down(time) || p->dice.chance(p->plan.drop)) {
        ++counters_.dropped;
        keeper_.free(m);
        return 0;
    }
    uint32_t copies = 1;
    if (p->dice.chance(p->plan.duplicate)) {
        now[1] = keeper_.copy_of(m);
        if (now[1] != nullptr) {
            ++copies;
            ++counters_.duplicated;
        }
    }
    if (p->dice.chance(p->plan.corrupt)) {
        damage(frame, p->dice);
        ++counters_.corrupted;
    }
    int64_t later = int64_t{p->plan.delay_us} * 1000;
    if (later != 0) ++counters_.delayed;
    const int64_t with_delay = later;
    if (p->dice.chance(p->plan.reorder)) {
        later += 1 + p->dice.below(kLongestOvertaking);
        ++counters_.reordered;
    }
    uint32_t going = 0;
    for (uint32_t i = 0; i < copies; ++i) {  // a second copy is not late
        const int64_t wait = i == 0 ? later : with_delay;
        if (wait != 0) {
            hold(now[i], time + wait);
        } else {
            now[going++] = now[i];
        }
    }
    return going;
}

void* FaultyWire::release(int64_t time) {
    if (held_.empty() || held_.top().due > time) return nullptr;
    void* const m = held_.top().frame;
    held_.pop();
    return m;
}

}  // namespace viaduct::packet
