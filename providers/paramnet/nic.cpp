// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing a NIC context, sleeping on it, names and addresses of this host.
#include "providers/paramnet/nic.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/provider/explain.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/futex.hpp"
#include "providers/paramnet/doorbells.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/progress.hpp"

namespace viaduct::paramnet {

namespace {

constexpr const char* kAllowMore = "allow the process more (ulimit -n, ulimit -v, ulimit -f), or its cgroup";

bool busy_with_memory(const Endpoint& ep, uint32_t handle) {
    return ep.connected && (is_busy_with(*ep.rx.own, handle) || is_busy_with(*ep.rx.peer, handle)) &&
           !ep.joint.peer->has_ended();
}

bool is_hot(const Endpoint& ep) {
    return ep.recv_hot.load(std::memory_order_relaxed) || ep.send_hot.load(std::memory_order_relaxed);
}

// When the first of the messages arrives that are on the modelled network now; `latest` if that is sooner.
// Those whose time has come are taken by the polls of their queue.
int64_t next_arrival(NicContext& nic, int64_t now, int64_t latest) {
    nic.slots_lock.lock();
    for (uint32_t slot = 0; slot < nic.slots_end; ++slot) {
        const Endpoint* ep = nic.slots[slot];
        if (ep == nullptr || !ep->connected) continue;
        const int64_t arrives = ep->arrives_at.load(std::memory_order_relaxed);
        if (arrives > now && arrives < latest) latest = arrives;
    }
    nic.slots_lock.unlock();
    return latest;
}

bool is_address_of_this_host(const uint8_t* ip, uint32_t ip_len) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return false;
    bool found = false;
    for (const ifaddrs* i = list; i != nullptr && !found; i = i->ifa_next) {
        if (i->ifa_addr == nullptr) continue;
        if (ip_len == 4 && i->ifa_addr->sa_family == AF_INET)
            found = std::memcmp(&reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, ip, 4) == 0;
        if (ip_len == 16 && i->ifa_addr->sa_family == AF_INET6)
            found = std::memcmp(&reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr, ip, 16) == 0;
    }
    ::freeifaddrs(list);
    return found;
}

bool is_loopback(const uint8_t* ip, uint32_t ip_len) {
    static constexpr uint8_t kLoopback6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return (ip_len == 4 && ip[0] == 127) || (ip_len == 16 && std::memcmp(ip, kLoopback6, 16) == 0);
}

}  // namespace

Status open(const OpenArgs& args, NicContext** out) {
    asymmetric_barrier_init();
    std::unique_ptr<NicContext> nic(new (std::nothrow) NicContext);
    const auto fail = [&](Status status, const char* why, const char* cure) {
        explain(args.agent, "paramnet", why, cure);
        return status;
    };
    if (!nic) return fail(Status::out_of_resources, "no memory is left", kAllowMore);
    Rejection why;
    if (!read_settings(*args.settings, args.nic.index, &nic->settings, &why))
        return fail(Status::not_supported, why.reason, why.cure);
    nic->info = args.nic;
    nic->agent = args.agent;
    nic->regions = args.regions;
    set_registered_memory_check(args.regions->asker());
    nic->context_id = args.context_id;
    while (nic->probe_word == 0)
        if (::getrandom(&nic->probe_word, sizeof nic->probe_word, 0) != sizeof nic->probe_word)
            return fail(Status::out_of_resources, with_error("the system gives no random numbers", errno).c_str(),
                        "let the container's filter of system calls permit getrandom");
    nic->hub_segment = Segment::create("viaduct-hub", sizeof(Hub));
    if (!nic->hub_segment.valid())
        return fail(Status::out_of_resources,
                    with_error("no shared memory (memfd) for what peers write", errno).c_str(), kAllowMore);
    nic->hub = reinterpret_cast<Hub*>(nic->hub_segment.data());
    nic->owner = reinterpret_cast<OwnerPage*>(nic->regions->owner_page());
    *out = nic.release();
    return Status::ok;
}

void close(NicContext* nic) {
    stop_progress(*nic);
    delete nic;
}

Status describe(NicContext* nic, Mail* open_request) {
    kagent::OpenNic body;
    if (!open_request->get(&body)) return Status::invalid;
    body.provider_words[kWordVersion] = kLayoutVersion;
    body.provider_words[kWordHubBytes] = sizeof(Hub);
    body.provider_words[kWordArenaBytes] = nic->arena.bytes();
    body.provider_words[kWordProbeAddress] = reinterpret_cast<uintptr_t>(&nic->probe_word);
    body.provider_words[kWordProbeValue] = nic->probe_word;
    body.private_descriptors = 1;  // the arena: a process that maps it can read and write all of it
    open_request->set(body);
    if (open_request->descriptors.empty())  // the region table comes first (kagent.hpp, OpenNic)
        open_request->descriptors.push_back(Fd(nic->regions->open_read_only()));
    open_request->descriptors.push_back(nic->hub_segment.duplicate(Segment::Access::read_write));
    // Every context has three descriptors; of one without an arena the third is never used.
    open_request->descriptors.push_back(nic->arena.bytes() != 0
                                            ? nic->arena.duplicate()
                                            : nic->hub_segment.duplicate(Segment::Access::read_write));
    for (const Fd& fd : open_request->descriptors)
        if (!fd.valid()) return Status::out_of_resources;
    return Status::ok;
}

Status memory_alloc(NicContext* nic, uint64_t bytes, uint64_t alignment, Region* out) {
    return nic->arena.allocate(bytes, alignment, out);
}

void memory_free(NicContext* nic, const Region& region) { nic->arena.release(region); }

uint32_t sleep_begin(NicContext* nic) {
    nic->owner->sleepers.fetch_add(1, std::memory_order_seq_cst);
    nic->slots_lock.lock();
    const bool first = nic->sleeping++ == 0;
    bool awaited = false;
    for (uint32_t slot = 0; slot < nic->slots_end; ++slot) {
        Endpoint* ep = nic->slots[slot];
        if (ep == nullptr || !ep->connected) continue;
        if (first && is_hot(*ep)) write_modes(*nic, *ep);
        awaited |= ep->awaits_acks.load(std::memory_order_relaxed) != 0;
    }
    nic->slots_lock.unlock();
    if (awaited) note_awaited(*nic);
    // A peer that has not seen the new modes by now has published something that the next poll finds. Not only for
    // the first sleeper: its barrier may still be under way.
    heavy_barrier();
    const uint32_t key = nic->hub->rings.load(std::memory_order_seq_cst);
    // A doorbell that is still marked as rung would not wake us when it rings again.
    drain_doorbells(*nic, Before::sleep);
    return key;
}

void sleep_wait(NicContext* nic, uint32_t key, Deadline deadline) {
    const int64_t left = remaining_ns(deadline), longest = longest_sleep(*nic);
    int64_t slice = left < 0 || left > longest ? longest : left;
    if (nic->settings.link.active()) {
        const int64_t now = now_ns();
        slice = next_arrival(*nic, now, now + slice) - now;
    }
    futex_wait(nic->hub->rings, key, slice, true);
    if (slice == longest && nic->hub->rings.load(std::memory_order_relaxed) == key) look_for_lost_rings(*nic);
}

void sleep_end(NicContext* nic) {
    nic->slots_lock.lock();
    if (--nic->sleeping == 0) {
        for (uint32_t slot = 0; slot < nic->slots_end; ++slot) {
            Endpoint* ep = nic->slots[slot];
            if (ep != nullptr && ep->connected && is_hot(*ep)) write_modes(*nic, *ep);
        }
    }
    nic->slots_lock.unlock();
    nic->owner->sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void wake(NicContext* nic) {
    nic->wake_requested.store(1, std::memory_order_release);
    wake_sleepers(nic->hub_view());
}

void region_removed(NicContext* nic, uint32_t handle, const Region& was) {
    // Only VIs that let their peer write or read can have a peer in our memory.
    if (nic->rdma_targets.load(std::memory_order_relaxed) == 0) return;
    // A peer that is not busy by now finds the region removed. Memory outside of the arena is never touched without a
    // fence of the process that touches it.
    if (was.arena == kArena) {
        heavy_barrier();
    } else {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    int64_t begin = 0;
    bool gave_up = false;
    nic->slots_lock.lock();
    for (uint32_t slot = 0; slot < nic->slots_end;) {
        Endpoint* ep = nic->slots[slot];
        if (ep == nullptr || !busy_with_memory(*ep, handle)) {
            ++slot;
            continue;
        }
        // All of them together are waited for as long as for one.
        Peer& peer = *ep->joint.peer;
        const int64_t now = now_ns();
        if (begin == 0) begin = now;
        if (now - begin > longest_wait(peer)) {
            if (is_busy_with(*ep->rx.peer, handle))
                gave_up |= peer.exceeded_wait.exchange(1, std::memory_order_relaxed) == 0;
            ++slot;
            continue;
        }
        nic->slots_lock.unlock();
        ::sched_yield();
        nic->slots_lock.lock();
    }
    nic->slots_lock.unlock();
    if (gave_up) VIADUCT_LOG(warn, "paramnet", "a peer does not leave our memory: deregistering without it");
}

Status resolve(NicContext* nic, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out) {
    if (!is_loopback(ip, ip_len) && !is_address_of_this_host(ip, ip_len)) return Status::no_match;
    const uint32_t nics = std::max(nic->settings.nics, 1u);
    if (index >= nics) return Status::no_match;
    // Index 0 is the peer NIC of this one: programs that open the second NIC look up index 0 too (spec/compat
    // A13).
    *out = host_address((nic->info.index + index) % nics);
    return Status::ok;
}

Endpoint* pin(NicContext& nic, uint32_t slot) {
    nic.slots_lock.lock();
    Endpoint* ep = slot < nic.slots_end ? nic.slots[slot] : nullptr;
    if (ep != nullptr) ++ep->pins;
    nic.slots_lock.unlock();
    return ep;
}

void unpin(NicContext& nic, Endpoint& ep) {
    nic.slots_lock.lock();
    --ep.pins;
    nic.slots_lock.unlock();
}

}  // namespace viaduct::paramnet
