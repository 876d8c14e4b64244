// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/engine.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/packet/host_parts.hpp"
#include "providers/packet/nic.hpp"
#include "providers/packet/plain_descriptor.hpp"

namespace viaduct::packet {

namespace {

// An application that polled so recently will poll again: the helper keeps away from the port.
constexpr int64_t kBusy = 1'000'000;
// Without a descriptor to wait for, the port is looked at so often.
constexpr int64_t kLookAgain = 100'000;
// The port takes no more frames for now.
constexpr int64_t kWireFull = 50'000;
constexpr int64_t kLongestSleep = 50'000'000;
// An acknowledgement is due 5 us after its frame; a sleep takes ten times as long, and more for the processor
// to be had again.
constexpr int64_t kWorthSleeping = 20'000;
// Frames taken by one poll.
constexpr int kBurstsPerPoll = 4;
// Polls in a row before a connection ends: a port holds no more frames, though each takes few of them.
constexpr int kMostLooks = 256;

// The cause for which this end stops: of the broken connection, else of a failed descriptor. R and S held.
Cause own_cause(const ViCore& vi) {
    if (!vi.is_marked_broken() || vi.reason.told_by_peer) return {};
    if (vi.reason.cause) return vi.reason.cause;
    for (const ViCore::Known& known : vi.causes)
        if (!known.told_by_peer && known.cause) return known.cause;
    return {};
}

}  // namespace

void Engine::wake_helper() {
    const CancellationHeldOff inside_hot_calls;
    wake_event_.signal();
}

Status Engine::set_faults(Endpoint& ep, const FaultPlan& plan) {
    const std::scoped_lock lock(mutex);
    if (ep.link == 0) return Status::invalid_state;
    return port_->set_faults(ep.link, plan) ? Status::ok : Status::out_of_resources;
}

// ---- polling

// E held, no VI's lock but those noted as held.
uint32_t Engine::look(int64_t now) {
    if (is_lost()) return 0;
    uint32_t taken = 0;
    bool more = true;
    if (look_requested_.load(std::memory_order_acquire) != 0) serve_doorbells(now);
    for (int i = 0; i < kBurstsPerPoll && more; ++i) {
        const uint32_t n = port_->receive([&](std::span<const std::byte> frame, const NicAddress& from) {
            node_->input(frame, from, now);
        });
        more = n >= FramePort::kBurst / 2;  // else there is hardly more
        taken += n;
    }
    if (node_->next_deadline() <= now) node_->advance(now);
    if (node_->wants_flush()) [[unlikely]]
        node_->flush(now);
    port_->transmit();
    return taken;
}

bool Engine::poll() {
    if (!mutex.try_lock()) return false;
    const int64_t now = this->now();
    polled_at_.store(now, std::memory_order_relaxed);
    look(now);
    if (broken_.empty()) [[likely]]
        mutex.unlock();
    else
        settle_and_unlock();
    return true;
}

// E held. A few at a time, so that neither this nor the list, which keeps its place for all VIs, needs memory.
[[gnu::noinline, gnu::cold]] void Engine::settle_and_unlock() {
    std::array<ViCore*, 64> broken;
    const size_t count = std::min(broken.size(), broken_.size());
    const auto end = broken_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(broken_.begin(), end, broken.begin());
    broken_.erase(broken_.begin(), end);
    if (!broken_.empty()) {
        look_requested_.store(1, std::memory_order_seq_cst);
        wake_helper();
    }
    mutex.unlock();
    for (size_t i = 0; i < count; ++i) broken[i]->events->settle(*broken[i]);
}

void Engine::poll_for(Endpoint& ep) {
    if (!mutex.try_lock()) return;
    const int64_t now = this->now();
    polled_at_.store(now, std::memory_order_relaxed);
    recv_held_ = &ep;
    look(now);
    recv_held_ = nullptr;
    if (!broken_.empty()) {
        std::erase(broken_, ep.vi);  // the caller settles this one itself
        if (!broken_.empty()) {      // others need a thread that holds no lock
            look_requested_.store(1, std::memory_order_seq_cst);
            wake_helper();
        }
    }
    mutex.unlock();
}

void Engine::finish_frames(int64_t now) {
    if (node_->wants_flush()) node_->flush(now);
    port_->transmit();
}

Engine::Idle Engine::idle(int64_t longest) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return {std::min(longest, kLookAgain)};
    if (look_requested_.load(std::memory_order_acquire) != 0) return {};
    if (node_->wants_flush()) longest = std::min(longest, kWireFull);
    const int64_t due = node_->next_deadline();
    if (due != wire::kNoTime) longest = std::min(longest, due - now_ns());
    if (port_->wait_fd() < 0) longest = std::min(longest, kLookAgain);
    if (const int64_t held = port_->held_until(); held != INT64_MAX)
        longest = std::min(longest, held - now_ns());
    if (longest <= 0 || is_lost()) return {std::max<int64_t>(longest, 0)};
    return {port_->may_sleep() ? longest : 0, port_->wait_fd()};
}

// Sleeps on the port and the clock; lets the port alone while an application polls.
void Engine::run_helper() {
    while (!stop_.load()) {
        const int64_t since = now_ns() - polled_at_.load(std::memory_order_relaxed);
        const Idle idle = since >= kBusy ? this->idle(kLongestSleep) : Idle{kBusy};
        pollfd fds[2] = {{wake_event_.fd(), POLLIN, 0}, {idle.fd, POLLIN, 0}};
        const timespec t = timespec_of(idle.ns);
        if (idle.ns > kWorthSleeping) ::ppoll(fds, 2, &t, nullptr);
        wake_event_.clear();
        const int64_t before = polled_at_.load(std::memory_order_relaxed);
        if (now_ns() - before < kBusy && look_requested_.load() == 0) continue;
        if (poll()) polled_at_.store(before, std::memory_order_relaxed);  // ours does not count
    }
    const std::scoped_lock lock(mutex);
    helper_ended_ = true;
    changed.notify_all();
}

// ---- doorbells: what a thread that holds a VI's lock asks of the thread that has the engine

void Engine::join(Endpoint* ep) {
    broken_.reserve(2 * endpoints_.size() + 2);  // a VI may be there twice
    endpoints_.push_back(ep);
}

void Engine::settle_old(Endpoint& ep) {
    ep.doorbells.exchange(0, std::memory_order_acq_rel);
    end_link(ep, now());
}

// stop() has been called, or the connection never began.
void Engine::end_link(Endpoint& ep, int64_t now) {
    note_stopped(ep);
    ep.found_at_stop = {};
    if (ep.link != 0) node_->disconnect(ep.link, now);
    ep.link = 0;
}

void Engine::leave(Endpoint* ep) {
    settle_old(*ep);
    std::erase(endpoints_, ep);
    std::erase(broken_, ep->vi);
}

void Engine::serve_doorbells(int64_t now) {
    look_requested_.store(0, std::memory_order_seq_cst);
    for (size_t i = 0; i < endpoints_.size(); ++i)
        if (endpoints_[i]->doorbells.load(std::memory_order_acquire) != 0) serve_doorbells_of(*endpoints_[i], now);
}

// No VI lock held by this thread but those noted as held.
void Engine::serve_doorbells_of(Endpoint& ep, int64_t now) {
    const uint32_t doorbells = ep.doorbells.exchange(0, std::memory_order_acq_rel);
    if ((doorbells & kDoorbellStop) != 0) end_link(ep, now);
    if ((doorbells & kDoorbellStart) != 0 && ep.link != 0) node_->start(ep.link, now);
    if ((doorbells & (kDoorbellSend | kDoorbellStart)) == 0) return;
    Endpoint* const held = std::exchange(send_held_, &ep);
    if (held != &ep) ep.vi->send.lock.lock();
    post_work(ep, now);
    send_held_ = held;
    if (held != &ep) ep.vi->send.lock.unlock();
}

// Leaves a request for the thread that has the engine, and makes sure that a thread has it.
void Engine::ring_doorbell(Endpoint& ep, uint32_t doorbell) {
    ep.doorbells.fetch_or(doorbell, std::memory_order_acq_rel);
    look_requested_.store(1, std::memory_order_seq_cst);
    wake_helper();
}

void Engine::kick_send(Endpoint& ep) {
    if (!ep.active) return;
    if (!mutex.try_lock()) return ring_doorbell(ep, kDoorbellSend);
    send_held_ = &ep;
    post_work(ep, now());
    send_held_ = nullptr;
    port_->transmit();
    if (!broken_.empty()) std::erase(broken_, ep.vi);  // the caller settles this one itself
    mutex.unlock();
}

void Engine::start(Endpoint& ep) {
    ep.active = true;
    ep.kept = ep.discards = ep.from_valid = ep.result_valid = false;
    ep.receives_base = ep.vi->recv.taken;
    ep.receives.store(ep.vi->recv.posted - ep.receives_base, std::memory_order_relaxed);
    ring_doorbell(ep, kDoorbellStart);
}

// The thread that has the engine meanwhile may be waiting for this VI's locks.
Status Engine::finish_traffic(Endpoint& ep) {
    if (!ep.active) return Status::ok;
    if (!mutex.try_lock()) return Status::not_done;
    const int64_t now = this->now();
    recv_held_ = send_held_ = &ep;
    for (int looks = 0; look(now) != 0 && looks < kMostLooks; ++looks) {
    }
    post_work(ep, now);
    port_->transmit();
    recv_held_ = send_held_ = nullptr;
    if (!broken_.empty()) {
        std::erase(broken_, ep.vi);  // the caller ends this one itself
        if (!broken_.empty()) {
            look_requested_.store(1, std::memory_order_seq_cst);
            wake_helper();
        }
    }
    const bool over = ep.link == 0 || is_lost() || ep.vi->is_marked_broken();
    mutex.unlock();
    return over || ep.vi->send.completed == ep.vi->send.posted ? Status::ok : Status::not_done;
}

void Engine::stop(Endpoint& ep) {
    ep.active = false;
    ep.bound.store(false, std::memory_order_release);
    ep.kept = ep.discards = false;
    ep.doorbells.fetch_and(~(kDoorbellStart | kDoorbellSend), std::memory_order_acq_rel);
    ep.found_at_stop = own_cause(*ep.vi);
    if (!mutex.try_lock()) return ring_doorbell(ep, kDoorbellStop);
    end_link(ep, now());
    port_->transmit();
    mutex.unlock();
}

// ---- our own work: E and S held

void Engine::post_work(Endpoint& ep, int64_t now) {
    WorkQueue& q = ep.vi->send;
    while (ep.active && ep.link != 0 && q.has_untaken() && !ep.vi->is_marked_broken())
        if (!post_one(ep, q.next_untaken(), now)) return;
}

// The usual message, without a description of the work. False: nothing has happened.
bool Engine::post_plain(Endpoint& ep, const VIP_DESCRIPTOR* d, int64_t now) {
    const ViCore& vi = *ep.vi;
    SegmentValue s;
    if (!is_plain(vi.send, d, &s) || s.length != d->CS.Length || s.length > vi.max_transfer) return false;
    const uint32_t immediate = d->CS.ImmediateData;
    const bool has_immediate = (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0;
    return node_->post_at_once(ep.link, vi.send.taken, {s.bytes(), s.length},
                               has_immediate ? &immediate : nullptr, now);
}

// As check_send, with a shorter way for the usual descriptor.
uint32_t Engine::check_work(ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t* total) {
    SegmentValue s;
    if (is_plain(vi.send, d, &s) && s.length == d->CS.Length && s.length <= vi.max_transfer) [[likely]] {
        *total = s.length;
        return 0;
    }
    const uint32_t error = check_send(vi, d, total);
    if (error == 0) remember_region(vi, vi.send, d);
    return error;
}

bool Engine::post_one(Endpoint& ep, VIP_DESCRIPTOR* d, int64_t now) {
    ViCore& vi = *ep.vi;
    WorkQueue& q = vi.send;
    if (post_plain(ep, d, now)) [[likely]] {
        ++q.taken;
        return true;
    }
    uint64_t total = 0;
    wire::Work w;
    uint32_t error = check_work(vi, d, &total);
    if (error == 0) error = describe_work(vi, d, static_cast<uint32_t>(total), &w);
    if (error != 0) {
        if (q.completed != q.taken) return false;  // its turn comes when those before it are finished
        ++q.taken;
        complete_head(q, sent_status_op(d->CS.Control) | error, 0);
        if (vi.traits.reliability == VIP_SERVICE_UNRELIABLE) return true;
        BreakReason why;  // spec/reliability 6.2: descriptor in error, connection broken
        why.report = false;
        vi.mark_broken(why);
        broken_.push_back(&vi);
        return false;
    }
    w.tag = q.taken;
    ++q.taken;
    if (node_->post(ep.link, w, now)) return true;
    if (q.taken == w.tag + 1 && !vi.is_marked_broken()) --q.taken;
    return false;
}

}  // namespace viaduct::packet
