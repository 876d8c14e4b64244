// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/group.hpp"

#include <bit>
#include <new>

#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/atomic_equals.hpp"
#include "providers/paramnet/doorbells.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

void set_pending(Group* group, uint32_t slot) {
    if (group == nullptr) return;
    group->pending[slot / 64].fetch_or(uint64_t{1} << (slot % 64), std::memory_order_relaxed);
    group->any_pending.store(1, std::memory_order_release);
}

namespace {

constexpr uint32_t kIdlePolls = 1024;  // a hot endpoint without traffic for so long may lose its place
constexpr uint32_t kTidyEvery = 255;   // polls between two looks for those that should not be hot, as a mask
constexpr uint32_t kLongIdle = 1 << 16;  // without traffic for so many polls it loses its place for nothing,
constexpr uint32_t kKeepHot = 2;         // unless there are no more than these: a poll hardly notices them
constexpr uint32_t kLookForLost = (1u << 14) - 1;     // between two looks for lost rings,
constexpr uint32_t kLookEverywhere = (1u << 20) - 1;  // and at everything
constexpr uint32_t kBroken = 32;                      // broken VIs one poll can settle
static_assert(2 * Group::kHot <= kBroken);

struct BrokenList {
    ViCore* vis[kBroken];
    uint32_t count = 0;
    bool full() const { return count == kBroken; }
    void add(ViCore* vi) { vis[count++] = vi; }
};

// Moves what can be moved of the queues that this group watches. A sender that waits takes what the other side sends as
// well: the answer to it may be there, or what the other side waits for.
[[gnu::noinline]] void poll_endpoint(Group* group, Endpoint& ep, BrokenList& broken) {
    ViCore& vi = *ep.vi;
    bool touched = false;
    if (ep.recv_group == group && lane_has_line(ep)) {
        const BiasedLockGuard held(vi.recv.lock);
        if (ep.connected) [[likely]]
            take_arrivals(ep);
        touched = true;
    } else if (ep.send_attention.load(std::memory_order_relaxed) != 0 && lane_has_line(ep) && vi.recv.lock.try_lock()) {
        if (ep.connected) [[likely]]
            take_arrivals(ep);
        vi.recv.lock.unlock();
        touched = true;
    }
    const bool acks = ep.send_group == group && ep.awaits_acks.load(std::memory_order_relaxed) != 0;
    if (acks || ep.send_attention.load(std::memory_order_relaxed) != 0) {
        const BiasedLockGuard held(vi.send.lock);
        collect_acks(ep);
        push_sends(ep);
        touched = true;
    }
    if (touched && vi.is_marked_broken()) broken.add(&vi);
}

bool is_hot(const Group* group, const Endpoint& ep) {
    return (ep.recv_group == group && ep.recv_hot.load(std::memory_order_relaxed)) ||
           (ep.send_group == group && ep.send_hot.load(std::memory_order_relaxed));
}

void set_hot(Group* group, Endpoint& ep, bool hot) {
    NicContext& nic = *ep.nic;
    nic.slots_lock.lock();
    const bool value = hot && ep.connected;
    if (ep.recv_group == group) ep.recv_hot.store(value, std::memory_order_relaxed);
    if (ep.send_group == group) ep.send_hot.store(value, std::memory_order_relaxed);
    if (ep.connected) write_modes(nic, ep);
    nic.slots_lock.unlock();
}

// It rings from now on. Group lock held.
void demote(Group* group, Endpoint& ep) {
    set_hot(group, ep, false);
    heavy_barrier();              // its peer rings, or has published what we see now:
    set_pending(group, ep.slot);  // one more look
}

// Group lock held.
void promote(Group* group, Endpoint& ep) {
    if (is_hot(group, ep)) return;
    uint32_t place = group->hot_count;
    for (uint32_t i = 0; i < group->hot_count; ++i)
        if (group->hot[i].endpoint == &ep) place = i;  // left over from a connection of the past
    if (place == Group::kHot) {
        for (uint32_t i = 0; i < Group::kHot && place == Group::kHot; ++i)
            if (group->polls - group->hot[i].last_hit > kIdlePolls) place = i;
        if (place == Group::kHot) return;
        demote(group, *group->hot[place].endpoint);
    } else if (place == group->hot_count) {
        ++group->hot_count;
    }
    group->hot[place] = {&ep, group->polls};
    set_hot(group, ep, true);
}

// A few loads for each endpoint that has nothing: this is all that an empty poll does.
inline void poll_hot(Group* group, BrokenList& broken) {
    const uint32_t count = group->hot_count.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i) {
        Endpoint& ep = *group->hot[i].endpoint;
        if (lane_has_line(ep) && ep.recv_group == group) {
            group->hot[i].last_hit = group->polls;
            ViCore& vi = *ep.vi;
            const BiasedLockGuard held(vi.recv.lock);
            if (ep.connected) [[likely]]
                take_arrivals(ep);
            if (vi.is_marked_broken()) [[unlikely]]
                broken.add(&vi);
        }
        if ((ep.awaits_acks.load(std::memory_order_relaxed) != 0 && ep.send_group == group) ||
            ep.send_attention.load(std::memory_order_relaxed) != 0) [[unlikely]] {
            group->hot[i].last_hit = group->polls;
            poll_endpoint(group, ep, broken);
        }
    }
}

// Endpoints that were disconnected meanwhile: polling their silent lane is harmless, but takes time. So do
// those that have had no traffic for long.
[[gnu::noinline]] void tidy_hot(Group* group) {
    for (uint32_t i = 0; i < group->hot_count;) {
        const Group::HotEntry& entry = group->hot[i];
        const bool connected = is_hot(group, *entry.endpoint);
        if (connected && (group->hot_count <= kKeepHot || group->polls - entry.last_hit <= kLongIdle)) {
            ++i;
            continue;
        }
        if (connected) demote(group, *entry.endpoint);
        group->hot[i] = group->hot[--group->hot_count];
    }
}

[[gnu::noinline]] void poll_pending(Group* group, BrokenList& broken) {
    group->any_pending.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    for (uint32_t word = 0; word < kDoorbellWords; ++word) {
        if (group->pending[word].load(std::memory_order_relaxed) == 0) continue;
        uint64_t bits = group->pending[word].exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
            const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
            if (broken.full()) {
                set_pending(group, slot);
                continue;
            }
            group->nic->slots_lock.lock();
            Endpoint* ep = group->nic->slots[slot];  // of this group: leave_groups clears the bits of others
            group->nic->slots_lock.unlock();
            if (ep == nullptr) continue;
            // A ring alone, as at the start of a connection, is no traffic.
            const uint32_t before = ep->rx.next.load(std::memory_order_relaxed);
            const bool sends = ep->awaits_acks.load(std::memory_order_relaxed) != 0 ||
                               ep->send_attention.load(std::memory_order_relaxed) != 0;
            poll_endpoint(group, *ep, broken);
            if (sends || ep->rx.next.load(std::memory_order_relaxed) != before) promote(group, *ep);
        }
    }
}

}  // namespace

void write_modes(NicContext& nic, Endpoint& ep) {
    const bool awake = nic.sleeping == 0;
    const auto mode = [&](const std::atomic<bool>& hot) {
        return awake && hot.load(std::memory_order_relaxed) ? kModePolled : kModeRing;
    };
    ep.rx.polled.store(mode(ep.recv_hot) == kModePolled ? 1 : 0, std::memory_order_relaxed);
    ep.rx.own->recv_mode.store(mode(ep.recv_hot), std::memory_order_relaxed);
    ep.rx.own->send_mode.store(mode(ep.send_hot), std::memory_order_relaxed);
}

Status group_create(NicContext* nic, Group** out) {
    *out = new (std::nothrow) Group;
    if (*out == nullptr) return Status::out_of_resources;
    (*out)->nic = nic;
    return Status::ok;
}

void group_destroy(Group* group) { delete group; }

namespace {

[[gnu::noinline]] void poll_in_general(Group* group) {
    NicContext& nic = *group->nic;
    BrokenList broken;
    bool look = false;
    {
        const BiasedLockGuard held(group->lock);
        if ((++group->polls & kTidyEvery) == 0) [[unlikely]] {
            tidy_hot(group);
            if ((group->polls & kLookForLost) == 0) look_for_lost_rings(nic);
            look = (group->polls & kLookEverywhere) == 0;
        }
        poll_hot(group, broken);
        if (nic.hub->rings.load(std::memory_order_acquire) != nic.rings_seen.load(std::memory_order_acquire))
            [[unlikely]]
            drain_doorbells(nic, Before::poll);
        if (group->any_pending.load(std::memory_order_acquire) != 0) [[unlikely]]
            poll_pending(group, broken);
    }
    if (look) [[unlikely]]
        request_poll_of_all(nic);
    for (uint32_t i = 0; i < broken.count; ++i) broken.vis[i]->events->settle(*broken.vis[i]);
}

// The group has one hot endpoint, whose receive queue it watches, and nothing else to look after now. Its
// lock held.
inline bool has_one_receiver_only(const Group& group, const Endpoint& ep) {
    const NicContext& nic = *group.nic;
    return ((group.polls + 1) & kTidyEvery) != 0 && ep.recv_group == &group && atomic_equals(ep.send_attention, 0u) &&
           (atomic_equals(ep.awaits_acks, 0u) || ep.send_group != &group) &&
           nic.hub->rings.load(std::memory_order_acquire) == nic.rings_seen.load(std::memory_order_acquire) &&
           atomic_equals(group.any_pending, 0u);
}

enum class Looked : uint8_t { elsewhere, done, broken };

// What a poll of a dialogue consists of. The group's lock held.
inline Looked poll_only(Group& group, Endpoint& ep) {
    if (!has_one_receiver_only(group, ep)) [[unlikely]]
        return Looked::elsewhere;
    ++group.polls;
    if (!lane_has_line(ep)) return Looked::done;
    ViCore& vi = *ep.vi;
    if (!vi.recv.lock.try_enter()) [[unlikely]]
        return Looked::elsewhere;
    group.hot[0].last_hit = group.polls;
    if (ep.connected) [[likely]]
        take_arrivals(ep);
    vi.recv.lock.leave();
    return vi.is_marked_broken() ? Looked::broken : Looked::done;
}

}  // namespace

void poll_group(Group* group) {
    if (!group->lock.try_enter()) [[unlikely]]
        return poll_in_general(group);
    Looked looked = Looked::elsewhere;
    ViCore* vi = nullptr;
    if (atomic_equals(group->hot_count, 1u)) [[likely]] {
        Endpoint& ep = *group->hot[0].endpoint;
        vi = ep.vi;
        looked = poll_only(*group, ep);
    }
    group->lock.leave();
    if (looked == Looked::done) [[likely]]
        return;
    if (looked == Looked::broken) return vi->events->settle(*vi);
    poll_in_general(group);
}

void try_promote(Endpoint& ep, Group* group) {
    if (group == nullptr) return;
    if (group->hot_count.load(std::memory_order_relaxed) == Group::kHot &&
        ++ep.promotion_tries % kIdlePolls != 0)
        return;
    if (!group->lock.try_lock()) return;
    promote(group, ep);
    group->lock.unlock();
}

void leave_groups(Endpoint& ep) {
    for (Group* group : {ep.recv_group, ep.send_group}) {
        if (group == nullptr) continue;
        group->lock.lock();
        for (uint32_t i = 0; i < group->hot_count;) {
            if (group->hot[i].endpoint == &ep) {
                group->hot[i] = group->hot[--group->hot_count];
            } else {
                ++i;
            }
        }
        group->pending[ep.slot / 64].fetch_and(~(uint64_t{1} << (ep.slot % 64)), std::memory_order_relaxed);
        group->lock.unlock();
    }
}

}  // namespace viaduct::paramnet
