// SPDX-License-Identifier: BSD-2-Clause
// The writing side of the segment described in layout.hpp: made once by the library, counters for any thread,
// memory for VIs. Where the system gives no memfd everything works the same, unseen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/process/never_destroyed.hpp"
#include "core/shm/growing_segment.hpp"
#include "core/stats/layout.hpp"
#include "core/stats/vi_stats.hpp"

namespace viaduct::stats {

// Of the whole process; names and meanings in kProcessCounters, in the same order.
enum class ProcessCount : uint32_t {
    nics_opened,
    connected,
    connections_lost,
    cq_overruns,
    rounds,
    async_told,
    async_unheard,
    agent_attached,
    count_
};
inline constexpr size_t kProcessCountKinds = static_cast<size_t>(ProcessCount::count_);
static_assert(kProcessCountKinds <= kMostCounters);

inline constexpr std::array<CounterInfo, kProcessCountKinds> kProcessCounters = {{
    {"nics_opened", "NICs opened"},
    {"connected", "connections made"},
    {"connections_lost", "connections that did not end by this process' own VipDisconnect"},
    {"cq_overruns", "completions that found their completion queue full"},
    {"rounds", "times an empty poll looked at everything else of its NIC"},
    {"async_told", "asynchronous errors told to a handler"},
    {"async_unheard", "asynchronous errors without a handler, of ended connections, or among too many of one kind"},
    {"agent_attached", "times the kernel agent was connected to; more than 1: it was replaced"},
}};

class ProcessStats {
public:
    // Makes the segment, unless there is one already. False: there is none, and vipstat shows nothing.
    bool open();
    // Another descriptor of the segment, for reading only. Invalid: there is no segment.
    Fd for_reading() const { return segment_->for_reading(); }
    // In a forked child: its parent's segment is none of its business.
    void reset_after_fork();

    void count(ProcessCount what, uint64_t by = 1) {
        counters_.load(std::memory_order_relaxed)[static_cast<size_t>(what)].fetch_add(
            by, std::memory_order_relaxed);
    }

    // The same for frequent things: no locked instruction, and a count may be lost between threads.
    void count_loosely(ProcessCount what) {
        std::atomic<uint64_t>& c = counters_.load(std::memory_order_relaxed)[static_cast<size_t>(what)];
        c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // Room for at least *count more records of that size, always the same multiple of 128; nullptr when there
    // is none. Says how many. Zeroed, aligned to 128, never given back, not inherited by forked children.
    void* records(uint32_t bytes, uint32_t* count);
    // The first record says where its fields are: called for each field with its place in that record.
    void describe(const char* name, const char* help, FieldKind kind, const void* record, const void* field,
                  uint16_t bytes);

private:
    StatsHeader* header() { return header_.load(std::memory_order_relaxed); }

    std::atomic<uint64_t> unseen_[kProcessCountKinds] = {};
    std::atomic<std::atomic<uint64_t>*> counters_{unseen_};
    std::atomic<StatsHeader*> header_{nullptr};
    NeverDestroyed<GrowingSegment> segment_;
};

extern ProcessStats process_stats;

}  // namespace viaduct::stats
