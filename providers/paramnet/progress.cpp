// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/progress.hpp"

#include <algorithm>
#include <bit>
#include <climits>

#include "core/clock/clock.hpp"
#include "core/sync/futex.hpp"
#include "providers/paramnet/doorbells.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/life.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/rendezvous.hpp"
#include "providers/paramnet/send.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

namespace {

constexpr int64_t kTickNs = 2'000'000;        // while there are backlogs
constexpr int64_t kPacedTickNs = 100'000;     // the same where messages take their time on the link
constexpr int64_t kTickTailNs = 100'000'000;  // ticking goes on for so long after the last backlog
constexpr int64_t kLookNs = 100'000'000;      // calls may be lost, and a watcher gets no call
constexpr uint32_t kMaxTold = 16;             // errors of one kind reported at once

// What progress_running says of the thread; 0: there is none.
enum : uint32_t { kStarts = 1, kRuns };

// What the peer has found out about us (spec/errors 8). Both queue locks held.
void handle_events(Endpoint& ep) {
    ViCore& vi = *ep.vi;
    static constexpr struct {
        VIP_ERROR_CODE code;
        VIP_ULONG opcode;
    } kMeaning[kEventKinds] = {
        {VIP_ERROR_RECVQ_EMPTY, VIP_STATUS_OP_RECEIVE},
        {VIP_ERROR_RDMAW_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE},
        {VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ},
        {VIP_ERROR_RDMAW_DATA, VIP_STATUS_OP_REMOTE_RDMA_WRITE},
        {VIP_ERROR_CONN_LOST, 0},  // kEventServe: no error, served by having been looked at
    };
    for (uint32_t kind = 0; kind < kEventKinds; ++kind) {
        const uint32_t count = ep.rx.peer->events[kind].load(std::memory_order_acquire);
        uint32_t fresh = count - ep.events_seen[kind].load(std::memory_order_relaxed);
        ep.events_seen[kind].store(count, std::memory_order_relaxed);
        if (kind == kEventServe || fresh == 0) continue;
        if (!ep.rx.unreliable) {
            break_connection(ep, kMeaning[kind].code, true, kMeaning[kind].opcode, cause_told(ep), true);
            continue;
        }
        for (fresh = fresh < kMaxTold ? fresh : kMaxTold; fresh != 0; --fresh)
            vi.events->async_error(vi, kMeaning[kind].code, VIP_RESOURCE_VI, kMeaning[kind].opcode, nullptr);
    }
    const uint32_t down = ep.rx.peer->link_down.load(std::memory_order_acquire);
    if (down != ep.link_down_seen.load(std::memory_order_relaxed)) {
        ep.link_down_seen.store(down, std::memory_order_relaxed);
        ep.tx.network.link_down = down != 0;
        update_fast(ep);
    }
}

// The peer has left: with a word, by its end, or by disconnecting. Both queue locks held.
void break_by_end(Endpoint& ep) {
    if (const Cause told = cause_told(ep)) return break_connection(ep, VIP_ERROR_CONN_LOST, true, 0, told, true);
    const bool disconnected = ep.rx.peer->closed.load(std::memory_order_acquire) != 0;
    break_connection(ep, VIP_ERROR_CONN_LOST, true, disconnected ? CauseKind::disconnected : CauseKind::process_ended);
}

// Both queue locks held; connected.
void service_connected(Endpoint& ep) {
    // Read first: what the peer had published before it left is still delivered (docs/data-path.md).
    const bool left = ep.rx.peer->closed.load(std::memory_order_acquire) != 0 ||
                      ep.joint.peer->has_ended();
    ep.servicing = true;
    // Once around the lane at most: a living peer that goes on sending has a living receiver's polls too.
    for (uint32_t lap = 0; lap < kLines / kPollBudget && serve_lines(ep, kPollBudget); ++lap) {
    }
    collect_acks(ep);
    push_sends(ep);
    ep.servicing = false;
    if (relay_is_asked_for(ep)) hand_over(ep);
    handle_events(ep);
    if (left) break_by_end(ep);
    if (lane_has_line(ep)) request_poll(ep);
}

enum class Need : uint8_t { nothing, soon, now };

// How pressing a call is. If only the lane is full, an application that polls will empty it, and taking its
// locks from here would make them slower for ever: then the next tick decides.
Need need_of(NicContext& nic, Endpoint& ep) {
    Need need = Need::nothing;
    nic.slots_lock.lock();  // while it is held a connected endpoint keeps its segment
    if (ep.connected) {
        const EndRecord& peer = *ep.rx.peer;
        bool now = peer.closed.load(std::memory_order_acquire) != 0 ||
                   ep.joint.peer->has_ended() || relay_is_asked_for(ep) ||
                   peer.link_down.load(std::memory_order_acquire) !=
                       ep.link_down_seen.load(std::memory_order_relaxed);
        for (uint32_t kind = 0; kind < kEventKinds; ++kind)
            now |= peer.events[kind].load(std::memory_order_acquire) !=
                   ep.events_seen[kind].load(std::memory_order_relaxed);
        need = now ? Need::now : lane_has_line(ep) ? Need::soon : Need::nothing;
    }
    nic.slots_lock.unlock();
    return need;
}

void answer(NicContext& nic, Endpoint& ep) {
    switch (need_of(nic, ep)) {
        case Need::now:
            service(ep);
            break;
        case Need::soon:
            if (!ep.lane_waits) ++nic.waiting_lanes;
            ep.lane_waits = true;
            ep.lane_seen = ep.rx.next.load(std::memory_order_relaxed);
            break;
        case Need::nothing:
            break;
    }
}

template <class Function>
void for_each_endpoint(NicContext& nic, Function function) {
    nic.slots_lock.lock();
    const uint32_t end = nic.slots_end;
    nic.slots_lock.unlock();
    for (uint32_t slot = 0; slot < end; ++slot) {
        Endpoint* ep = pin(nic, slot);
        if (ep == nullptr) continue;
        function(*ep);
        unpin(nic, *ep);
    }
}

// `look`: also at calls that the hub does not tell of.
void answer_calls(NicContext& nic, bool look) {
    uint64_t called[kDoorbellWords] = {};
    take_calls(nic, look, called);
    for (uint32_t word = 0; word < kDoorbellWords; ++word) {
        for (uint64_t bits = called[word]; bits != 0; bits &= bits - 1) {
            Endpoint* ep = pin(nic, word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
            if (ep == nullptr) continue;
            answer(nic, *ep);
            unpin(nic, *ep);
        }
    }
}

// Sends that have not been acknowledged since the last tick: the peer's application does not poll. True: they
// have been, and it is ours that does not look.
bool call_for_acks(NicContext& nic, Endpoint& ep) {
    bool arrived = false;
    nic.slots_lock.lock();
    const uint32_t awaited = ep.connected ? ep.awaits_acks.load(std::memory_order_relaxed) : 0;
    if (awaited != 0) {
        nic.awaited.store(1, std::memory_order_relaxed);
        if (awaited == ep.acks_awaited) {
            const auto placed = static_cast<uint32_t>(ep.rx.peer->placed.load(std::memory_order_acquire));
            arrived = static_cast<int32_t>((placed << 1 | 1) - awaited) >= 0;
            if (!arrived) {
                ep.left_waiting.store(true, std::memory_order_relaxed);
                call_peer(ep);
            }
        }
    }
    ep.acks_awaited = awaited;
    nic.slots_lock.unlock();
    return arrived;
}

// Backlogs and waiting lanes that were not polled since the last tick. True: there were some.
bool tick(NicContext& nic) {
    bool served = false;
    nic.waiting_lanes = 0;
    nic.awaited.store(0, std::memory_order_relaxed);
    for_each_endpoint(nic, [&](Endpoint& ep) {
        bool idle = false;
        if (ep.send_attention.load(std::memory_order_relaxed) != 0) {
            idle = ep.push_attempts.load(std::memory_order_relaxed) == ep.attempts_seen;
        }
        if (ep.lane_waits) {
            ep.lane_waits = false;
            idle |= ep.rx.next.load(std::memory_order_relaxed) == ep.lane_seen;
        }
        if (ep.watched) {
            ep.watched = ep.rx.next.load(std::memory_order_relaxed) == ep.line_at_look;
            if (ep.watched && need_of(nic, ep) == Need::soon) {
                ++nic.waiting_lanes;  // the next one is expected soon
                idle = true;
            }
        }
        idle |= call_for_acks(nic, ep);
        if (idle) service(ep);
        served |= idle;
        if (ep.watched) ep.line_at_look = ep.rx.next.load(std::memory_order_relaxed);
        ep.attempts_seen = ep.push_attempts.load(std::memory_order_relaxed);
    });
    return served;
}

void look_after_deaths(NicContext& nic) {
    for_each_endpoint(nic, [&](Endpoint& ep) {
        if (need_of(nic, ep) == Need::now) service(ep);
    });
}

// A program may watch the Status of its descriptors in memory and call nothing (spec/descriptors 2.6), and
// no peer rings for a lane that is said to be polled. What was there at the last look and still is gets served
// from here; a program that polls does not leave it for so long, and keeps its locks for itself.
void look_after_watchers(NicContext& nic) {
    for_each_endpoint(nic, [&](Endpoint& ep) {
        const bool line = need_of(nic, ep) == Need::soon;
        const uint32_t next = ep.rx.next.load(std::memory_order_relaxed);
        const bool stays = next == ep.line_at_look;
        ep.watched = stays && (ep.watched || (line && ep.line_waited));
        ep.line_waited = line;
        ep.line_at_look = next;
        if (ep.watched && line) {
            service(ep);
            ep.line_waited = false;
            ep.line_at_look = ep.rx.next.load(std::memory_order_relaxed);
            ++nic.waiting_lanes;
        }
        const uint32_t acks = ep.awaits_acks.load(std::memory_order_relaxed);
        if (acks != 0 && acks == ep.acks_at_look) nic.awaited.store(1, std::memory_order_relaxed);
        ep.acks_at_look = acks;
    });
}

bool must_tick(const NicContext& nic) {
    return nic.backlogs.load(std::memory_order_seq_cst) != 0 ||
           nic.awaited.load(std::memory_order_seq_cst) != 0 || nic.waiting_lanes != 0;
}

// The time until the next tick. A modelled NIC moves data on time while the application computes; one that
// looks by itself is disturbed less and less.
int64_t next_pause(const NicContext& nic, int64_t pause, bool served) {
    if (!nic.settings.link.active()) return kTickNs;
    return served ? kPacedTickNs : std::min(2 * pause, kTickNs);
}

// How long to sleep, and whether backlogs have to wake us.
int64_t next_timeout(NicContext& nic, int64_t pause, int64_t* tail_end) {
    const bool busy = must_tick(nic);
    const bool ticking = nic.progress_ticking.load(std::memory_order_relaxed) != 0;
    if (!busy && !ticking) return longest_sleep(nic);
    const int64_t now = now_ns();
    if (busy) {
        *tail_end = now + kTickTailNs;
    } else if (now > *tail_end) {
        nic.progress_ticking.store(0, std::memory_order_seq_cst);
        if (!must_tick(nic)) return longest_sleep(nic);  // looked at after the store: note_backlog wakes us
    }
    nic.progress_ticking.store(1, std::memory_order_seq_cst);
    return pause;
}

void look_after(NicContext& nic) {
    Hub& hub = *nic.hub;
    int64_t pause = next_pause(nic, kTickNs, false);
    int64_t tail_end = 0, last_tick = 0, last_look = now_ns();
    while (nic.progress_stop.load(std::memory_order_acquire) == 0) {
        const uint32_t seen = hub.service_rings.load(std::memory_order_seq_cst);
        answer_calls(nic, false);
        if (nic.deaths.exchange(0, std::memory_order_acquire) != 0) look_after_deaths(nic);
        if (nic.retired.exchange(0, std::memory_order_relaxed) != 0)
            for_each_endpoint(nic, [](Endpoint& ep) { reap(ep); });
        const int64_t timeout = next_timeout(nic, pause, &tail_end);
        nic.owner->service_asleep.store(1, std::memory_order_seq_cst);
        if (hub.service_rings.load(std::memory_order_seq_cst) == seen &&
            nic.progress_stop.load(std::memory_order_acquire) == 0)
            futex_wait(hub.service_rings, seen, timeout, true);
        nic.owner->service_asleep.store(0, std::memory_order_relaxed);
        // Calls may come all the time: ticks have a clock of their own.
        const int64_t now = now_ns();
        if (timeout == pause && now - last_tick >= pause) {
            last_tick = now;
            pause = next_pause(nic, pause, tick(nic));
        }
        if (now - last_look >= std::min(kLookNs, longest_sleep(nic))) answer_calls(nic, true);
        if (now - last_look >= kLookNs) {
            last_look = now;
            look_after_deaths(nic);
            look_after_watchers(nic);
        }
    }
}

void run(void* argument) {
    auto& nic = *static_cast<NicContext*>(argument);
    {
        const LifeHeld held(nic.owner->life);
        nic.progress_running.store(kRuns, std::memory_order_release);
        futex_wake(nic.progress_running, INT_MAX, false);
        look_after(nic);
    }
    nic.progress_running.store(0, std::memory_order_release);
    futex_wake(nic.progress_running, 1, false);
}

}  // namespace

Status ensure_progress(NicContext& nic) {
    std::call_once(nic.progress_once, [&] {
        nic.progress_running.store(kStarts, std::memory_order_relaxed);
        nic.progress_status = nic.agent->spawn("vipl-paramnet", run, &nic);
        if (nic.progress_status != Status::ok) nic.progress_running.store(0, std::memory_order_relaxed);
        // Connected peers read our life word: no connection is requested before they can.
        while (nic.progress_running.load(std::memory_order_acquire) == kStarts)
            futex_wait(nic.progress_running, kStarts, -1, false);
    });
    return nic.progress_status;
}

void stop_progress(NicContext& nic) {
    nic.progress_stop.store(1, std::memory_order_release);
    while (const uint32_t state = nic.progress_running.load(std::memory_order_acquire)) {
        wake_service(nic.hub_view());
        futex_wait(nic.progress_running, state, kTickNs, false);
    }
}

void wake_progress(NicContext& nic) { wake_service(nic.hub_view()); }

void report_death(NicContext& nic) {
    nic.deaths.fetch_add(1, std::memory_order_release);
    wake_progress(nic);
}

void note_backlog(NicContext& nic) {
    nic.backlogs.fetch_add(1, std::memory_order_seq_cst);
    if (nic.progress_ticking.load(std::memory_order_seq_cst) == 0) wake_progress(nic);
}

void note_awaited(NicContext& nic) {
    nic.awaited.store(1, std::memory_order_seq_cst);
    if (nic.progress_ticking.load(std::memory_order_seq_cst) == 0) wake_progress(nic);
}

void service(Endpoint& ep) {
    ViCore& vi = *ep.vi;
    vi.recv.lock.lock();
    vi.send.lock.lock();
    if (ep.connected) service_connected(ep);
    const bool broken = ep.connected && vi.is_marked_broken();
    vi.send.lock.unlock();
    vi.recv.lock.unlock();
    if (broken) vi.events->settle(vi);
}

}  // namespace viaduct::paramnet
