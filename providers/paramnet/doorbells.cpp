// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/doorbells.hpp"

#include <bit>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/nic.hpp"

namespace viaduct::paramnet {

namespace {

constexpr int64_t kScanPauseNs = 1'000'000;            // between two full scans before polls
constexpr int64_t kSleepNs = 100'000'000;              // the longest sleep where no ring has been lost,
constexpr int64_t kShortSleepNs = 1'000'000;           // and where one has,
constexpr int64_t kFullScanPeriodNs = 10'000'000'000;  // for so long

using Mark = std::atomic<uint32_t> EndRecord::*;

uint64_t bit_of(uint32_t slot) { return uint64_t{1} << (slot % 64); }

// The mark that the other end has set in its end record. slots_lock held: a connected endpoint keeps its segment.
bool take_mark_of(Endpoint& ep, Mark mark) {
    return ep.connected && take_mark(ep.joint.shared()->ends[1 - ep.joint.side].*mark);
}

// The endpoints that `words` name and, unless the words are our own, whose peer says the same. slots_lock held.
template <class Function>
bool take_named(NicContext& nic, std::atomic<uint64_t>* words, bool own, Mark mark, Function function) {
    bool found = false;
    for (uint32_t word = 0; word < kDoorbellWords; ++word) {
        if (words[word].load(std::memory_order_relaxed) == 0) continue;
        uint64_t bits = words[word].exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
            const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
            Endpoint* ep = nic.slots[slot];
            if (ep == nullptr) continue;
            const bool marked = take_mark_of(*ep, mark);
            if (!own && !marked) continue;
            function(*ep);
            found = true;
        }
    }
    return found;
}

// The endpoints whose peer says so, whatever the hub says. slots_lock held.
template <class Function>
bool take_marked(NicContext& nic, Mark mark, Function function) {
    bool found = false;
    for (uint32_t slot = 0; slot < nic.slots_end; ++slot) {
        Endpoint* ep = nic.slots[slot];
        if (ep == nullptr || !take_mark_of(*ep, mark)) continue;
        function(*ep);
        found = true;
    }
    return found;
}

void hand_out(Endpoint& ep) {
    set_pending(ep.recv_group, ep.slot);
    if (ep.send_group != ep.recv_group) set_pending(ep.send_group, ep.slot);
}

void begin_full_scans(NicContext& nic) {
    if (nic.full_scan_until.exchange(now_ns() + kFullScanPeriodNs, std::memory_order_relaxed) == 0)
        VIADUCT_LOG(info, "paramnet",
                    "a peer rang and the hub did not tell of it: end records are looked at more often");
}

}  // namespace

void drain_doorbells(NicContext& nic, Before before) {
    nic.slots_lock.lock();
    const uint32_t seen = nic.hub->rings.load(std::memory_order_acquire);
    const bool moved = seen != nic.rings_seen.load(std::memory_order_relaxed);
    bool explained = nic.wake_requested.exchange(0, std::memory_order_acquire) != 0;
    explained |= take_named(nic, nic.poll_requests, true, &EndRecord::rung, hand_out);
    explained |= take_named(nic, nic.hub->doorbells, false, &EndRecord::rung, hand_out);
    bool complete = true;
    const int64_t until = nic.full_scan_until.load(std::memory_order_relaxed);
    if ((moved && !explained) || until != 0) [[unlikely]] {
        const int64_t now = now_ns();
        const bool due = before == Before::sleep || now - nic.last_scan >= kScanPauseNs;
        if (due && ((moved && !explained) || now < until)) {
            nic.last_scan = now;
            take_marked(nic, &EndRecord::rung, hand_out);
        }
        complete = due || explained;
    }
    // Last: a reader of the new value finds everything handed out.
    if (complete) nic.rings_seen.store(seen, std::memory_order_release);
    nic.slots_lock.unlock();
}

void look_for_lost_rings(NicContext& nic) {
    nic.slots_lock.lock();
    const bool moved =
        nic.hub->rings.load(std::memory_order_acquire) != nic.rings_seen.load(std::memory_order_relaxed);
    const bool found = take_marked(nic, &EndRecord::rung, hand_out);
    nic.slots_lock.unlock();
    if (found && !moved) begin_full_scans(nic);
}

int64_t longest_sleep(const NicContext& nic) {
    const int64_t until = nic.full_scan_until.load(std::memory_order_relaxed);
    return until != 0 && now_ns() < until ? kShortSleepNs : kSleepNs;
}

void take_calls(NicContext& nic, bool look, uint64_t (&slots)[kDoorbellWords]) {
    const auto note = [&slots](const Endpoint& ep) { slots[ep.slot / 64] |= bit_of(ep.slot); };
    nic.slots_lock.lock();
    const uint32_t seen = nic.hub->service_rings.load(std::memory_order_acquire);
    const bool moved = seen != nic.calls_seen;
    bool explained = take_named(nic, nic.own_calls, true, &EndRecord::called, note);
    explained |= take_named(nic, nic.hub->services, false, &EndRecord::called, note);
    const bool lost = (look || (moved && !explained)) && take_marked(nic, &EndRecord::called, note);
    nic.calls_seen = seen;
    nic.slots_lock.unlock();
    if (lost && !moved) begin_full_scans(nic);
}

void request_poll_of(NicContext& nic, uint32_t slot) {
    nic.poll_requests[slot / 64].fetch_or(bit_of(slot), std::memory_order_relaxed);
    wake_sleepers(nic.hub_view());
}

void request_poll_of_all(NicContext& nic) {
    nic.slots_lock.lock();
    for (uint32_t slot = 0; slot < nic.slots_end; ++slot)
        if (nic.slots[slot] != nullptr) nic.poll_requests[slot / 64].fetch_or(bit_of(slot), std::memory_order_relaxed);
    nic.slots_lock.unlock();
    wake_sleepers(nic.hub_view());
}

void call_own(NicContext& nic, uint32_t slot) {
    nic.own_calls[slot / 64].fetch_or(bit_of(slot), std::memory_order_relaxed);
    wake_service(nic.hub_view());
}

}  // namespace viaduct::paramnet
