// SPDX-License-Identifier: BSD-2-Clause
// The deadlines of a node's links: a binary heap with one place per link, made once. One more deadline lies
// beside it: an acknowledgement is due soon after each frame and rides on the answer in most cases, which
// would move the heap twice for nothing. Used by Node and Link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "providers/wire/host.hpp"

namespace viaduct::wire {

class Deadlines {
public:
    explicit Deadlines(uint32_t links) : due_(links, kNoTime), place_(links, kNowhere) {
        heap_.reserve(links);
    }

    Time earliest() const { return std::min(soon_, in_heap()); }
    uint32_t first() const { return soon_ <= in_heap() ? soon_link_ : heap_[0]; }
    Time of(uint32_t link) const { return due_[link]; }

    // Beside the heap, where that is free; not later than the link's deadline there.
    void set_soon(uint32_t link, Time due) {
        if (soon_ == kNoTime || soon_link_ == link) {
            soon_link_ = link;
            soon_ = due;
        } else if (due < due_[link]) {
            set(link, due);
        }
    }
    void drop_soon(uint32_t link) {
        if (soon_link_ == link) soon_ = kNoTime;
    }

    // kNoTime takes the link out.
    void set(uint32_t link, Time due) {
        if (due == due_[link]) return;
        const Time before = std::exchange(due_[link], due);
        if (due == kNoTime) {
            remove(link);
        } else if (place_[link] == kNowhere) {
            place_[link] = static_cast<uint32_t>(heap_.size());
            heap_.push_back(link);
            rise(place_[link]);
        } else if (due < before) {
            rise(place_[link]);
        } else {
            sink(place_[link]);
        }
    }

private:
    static constexpr uint32_t kNowhere = UINT32_MAX;

    Time in_heap() const { return heap_.empty() ? kNoTime : due_[heap_[0]]; }
    void put(uint32_t place, uint32_t link) {
        heap_[place] = link;
        place_[link] = place;
    }
    void rise(uint32_t place) {
        const uint32_t link = heap_[place];
        while (place != 0 && due_[heap_[(place - 1) / 2]] > due_[link]) {
            put(place, heap_[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        put(place, link);
    }
    void sink(uint32_t place) {
        const uint32_t link = heap_[place];
        for (;;) {
            uint32_t child = 2 * place + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && due_[heap_[child + 1]] < due_[heap_[child]]) ++child;
            if (due_[heap_[child]] >= due_[link]) break;
            put(place, heap_[child]);
            place = child;
        }
        put(place, link);
    }
    void remove(uint32_t link) {
        const uint32_t place = std::exchange(place_[link], kNowhere);
        if (place == kNowhere) return;
        const uint32_t last = heap_.back();
        heap_.pop_back();
        if (last == link) return;
        put(place, last);
        rise(place);
        sink(place_[last]);
    }

    std::vector<Time> due_;
    std::vector<uint32_t> place_;
    std::vector<uint32_t> heap_;
    uint32_t soon_link_ = kNowhere;
    Time soon_ = kNoTime;
};

}  // namespace viaduct::wire
