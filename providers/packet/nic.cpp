// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/nic.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "core/provider/explain.hpp"
#include "core/shm/own_mapping.hpp"
#include "core/sync/asymmetric_barrier.hpp"

namespace viaduct::packet {

namespace {

// Another thread may have the engine when a sleeper polls: no thread sleeps longer than this.
constexpr int64_t kSleepSlice = 20'000'000;
// What is due sooner is waited for awake.
constexpr int64_t kWorthWaitingAsleep = 20'000;

constexpr const char* kAllowMore = "allow the process more (ulimit -n, ulimit -v), or its cgroup";

}  // namespace

Status open(const OpenArgs& args, std::unique_ptr<PortSource> source, NicContext** out) {
    asymmetric_barrier_init();
    std::unique_ptr<NicContext> nic(new (std::nothrow) NicContext);
    const auto fail = [&](const char* why, const char* cure) {
        explain(args.agent, source->section(), why, cure);
        return Status::out_of_resources;
    };
    if (!nic) return fail("no memory is left", kAllowMore);
    nic->info = args.nic;
    nic->agent = args.agent;
    nic->regions = args.regions;
    set_registered_memory_check(args.regions->asker());
    if (!nic->wake_event.open()) return fail(with_error("no eventfd for wake-ups", errno).c_str(), kAllowMore);
    std::string why, cure;
    nic->engine = Engine::get(*source, args.agent, &why, &cure);
    if (!nic->engine) return fail(why.c_str(), cure.c_str());
    nic->source = std::move(source);
    nic->context_id = args.context_id;
    nic->engine->add_context(nic->context_id);
    *out = nic.release();
    return Status::ok;
}

void close(NicContext* nic) {
    nic->engine->remove_context(nic->context_id);
    delete nic;
}

Status describe(NicContext* nic, Mail* open_request) {
    if (open_request->descriptors.empty())  // the agent takes the region table of every context
        open_request->descriptors.push_back(Fd(nic->regions->open_read_only()));
    return open_request->descriptors.front().valid() ? Status::ok : Status::out_of_resources;
}

Status group_create(NicContext* nic, Group** out) {
    *out = new (std::nothrow) Group{nic};
    return *out != nullptr ? Status::ok : Status::out_of_resources;
}

void group_destroy(Group* group) { delete group; }

void poll_group(Group* group) { group->nic->engine->poll(); }

Status endpoint_create(NicContext* nic, const EndpointArgs& args, Endpoint** out) {
    std::unique_ptr<Endpoint> ep(new (std::nothrow) Endpoint);
    if (!ep) return Status::out_of_resources;
    ep->vi = args.vi;
    ep->nic = nic;
    const std::scoped_lock lock(nic->engine->mutex);
    nic->engine->join(ep.get());
    *out = ep.release();
    return Status::ok;
}

void endpoint_destroy(Endpoint* ep) {
    {
        const std::scoped_lock lock(ep->nic->engine->mutex);
        ep->nic->engine->leave(ep);
        ep->nic->engine->finish_frames();
    }
    delete ep;
}

void start(ViCore& vi) { vi.endpoint->nic->engine->start(*vi.endpoint); }
Status finish_traffic(ViCore& vi) { return vi.endpoint->nic->engine->finish_traffic(*vi.endpoint); }
void disconnect(ViCore& vi) { vi.endpoint->nic->engine->stop(*vi.endpoint); }
void kick_send(ViCore& vi) { vi.endpoint->nic->engine->kick_send(*vi.endpoint); }

void kick_recv(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (ep.active) ep.receives.store(vi.recv.posted - ep.receives_base, std::memory_order_release);
}

void poll_recv(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (ep.active) ep.nic->engine->poll_for(ep);
}

// ---- sleeping: on the port itself, so that a frame wakes the waiting thread itself

uint32_t sleep_begin(NicContext* nic) {
    nic->sleepers.fetch_add(1, std::memory_order_seq_cst);
    return nic->wakes.load(std::memory_order_seq_cst);
}

void sleep_wait(NicContext* nic, uint32_t key, Deadline deadline) {
    if (nic->wakes.load(std::memory_order_seq_cst) != key) return;
    const int64_t left = remaining_ns(deadline);
    const Engine::Idle idle = nic->engine->idle(left < 0 || left > kSleepSlice ? kSleepSlice : left);
    if (idle.ns <= kWorthWaitingAsleep) return;  // the caller looks again
    pollfd fds[2] = {{nic->wake_event.fd(), POLLIN, 0}, {idle.fd, POLLIN, 0}};
    const timespec t = timespec_of(idle.ns);
    ::ppoll(fds, 2, &t, nullptr);
}

void sleep_end(NicContext* nic) {
    if (nic->sleepers.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
    nic->wake_event.clear();
}

void wake(NicContext* nic) {
    nic->wakes.fetch_add(1, std::memory_order_seq_cst);
    if (nic->sleepers.load(std::memory_order_seq_cst) == 0) return;
    nic->wake_event.signal();
}

// A thread that uses the region has the engine; a later one finds the region invalid.
void region_removed(NicContext* nic, uint32_t, const Region&) {
    const std::scoped_lock lock(nic->engine->mutex);
}

Status set_fault_plan(ViCore& vi, const char* plan) {
    FaultPlan parsed;
    if (!parse_fault_plan(plan, &parsed)) return Status::invalid;
    return vi.endpoint->nic->engine->set_faults(*vi.endpoint, parsed);
}

Status resolve(NicContext* nic, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out) {
    if (ip_len != 4 || index != 0) return Status::no_match;
    uint32_t address;
    std::memcpy(&address, ip, sizeof address);
    return nic->source->resolve(address, out) ? Status::ok : Status::no_match;
}

}  // namespace viaduct::packet
