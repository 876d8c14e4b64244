// SPDX-License-Identifier: BSD-2-Clause
// An open NIC: everything that belongs to one VIP_NIC_HANDLE. Control calls pin it, so that VipCloseNic can
// wait until no call is inside; hot calls are held off by the locks of their queues instead.
#pragma once

#include <vipl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/link.hpp"
#include "core/memory/region_table.hpp"
#include "core/sync/biased_lock.hpp"
#include "viaduct/kagent.hpp"
#include "viaduct/provider.hpp"
#include "vipl/allocation.hpp"
#include "vipl/lease.hpp"

namespace viaduct::vipl {

class Library;
class Dispatcher;
struct Vi;
struct Cq;
struct Ptag;
struct Connection;

// A provider's polling group with the lock that keeps it alive while a thread polls it.
struct PollGroup {
    BiasedLock lock;
    Group* group = nullptr;
};

struct Nic {
    std::atomic<uintptr_t> handle{0};  // 0: closing, closed or not yet open
    std::atomic<uint32_t> users{0};    // pins

    Library* library = nullptr;
    const Provider* provider = nullptr;
    const DataOps* ops = nullptr;
    NicContext* context = nullptr;
    NicInfo info;
    uint64_t context_id = 0;
    std::string device;  // the name it was opened by, after aliases
    kagent::NameText asked;  // the same in its request to the agent
    std::unique_ptr<RegionTable> regions;
    std::shared_ptr<Dispatcher> dispatcher;
    std::atomic<bool> unknown_to_agent{false};  // which does not list the NIC: see make_known
    std::mutex make_known_mutex;
    std::atomic<bool> gives_way{true};       // polls of its queues do, where other threads need the processor
    uint8_t address[kNicAddressBytes] = {};  // what LocalNicAddress points to

    PollGroup own_group;  // of queues without a completion queue
    Leases leases;

    // Guards what follows.
    std::mutex mutex;
    std::vector<Vi*> vis;  // by slot; nullptr: free
    std::vector<uint32_t> free_slots;
    uint32_t vi_count = 0;
    std::vector<Cq*> cqs;
    std::vector<Ptag*> ptags;  // by id; [0] is never used
    std::vector<Connection*> connections;
    std::vector<Allocation> allocations;
    bool names_started = false;

    // Guards the life of every group against poll_everything.
    std::mutex groups_mutex;
    std::vector<PollGroup*> groups;

    VIP_NIC_HANDLE public_handle() const { return reinterpret_cast<VIP_NIC_HANDLE>(handle.load()); }
};

// Keeps an open NIC from being closed underneath. Empty when the handle is not live.
class NicPin {
public:
    NicPin() = default;
    explicit NicPin(VIP_NIC_HANDLE handle);
    // From inside, for threads that have a NIC pointer and no handle.
    explicit NicPin(Nic& nic) : nic_(try_pin(nic) ? &nic : nullptr) {}
    // For a call on an object of the NIC: `still` is the object's handle word, which must equal `handle`.
    NicPin(Nic* nic, const std::atomic<uintptr_t>& still, const void* handle);
    NicPin(NicPin&& other) noexcept : nic_(std::exchange(other.nic_, nullptr)) {}
    NicPin& operator=(NicPin&&) = delete;
    ~NicPin() { release(); }
    void release();
    // The same where no scope ends it. False when the NIC is closing.
    static bool try_pin(Nic& nic);
    static void unpin(Nic& nic);

    explicit operator bool() const { return nic_ != nullptr; }
    Nic* operator->() const { return nic_; }
    Nic& operator*() const { return *nic_; }

private:
    Nic* nic_ = nullptr;
};

VIP_RETURN open_nic(const char* name, VIP_NIC_HANDLE* out);
VIP_RETURN close_nic(VIP_NIC_HANDLE handle);
void query_nic(const Nic& nic, VIP_NIC_ATTRIBUTES* out);

// Steps of closing, used also when opening fails half-way: what needs the agent, and all the rest.
void tell_agent_closed(Nic& nic);
void take_apart(Nic& nic);

// Tells a new kernel agent of a NIC that the agent before it, which has died, had open. Inside
// AgentLink::on_reattach only.
Status reattach_nic(Nic& nic, AgentLink& link);

// For a NIC that was opened at the agent and has just come on the library's list of open ones: should the
// agent have died in between, its successor is told here. `epoch`: of the link, before the NIC was opened.
Status assure_known(Nic& nic, uint64_t epoch, Deadline deadline);

// Before a request about the NIC: connects, and opens the NIC at the agent if the agent did not list it when the
// process connected. If the agent still does not list it, the call that is under way on this thread gets the reason,
// and the result is out_of_resources.
Status make_known(Nic& nic, Deadline deadline);

// The NIC is lost for good: every VI goes to Error, the program is told once (spec/errors 8,
// CATASTROPHIC).
void nic_failed(Nic& nic);

// Visits the VIs one after the other, with no lock held and no memory needed. A VI keeps its place while it lives; one
// may be destroyed at any time: its memory stays.
template <class Visit>
void for_each_vi(Nic& nic, Visit&& visit) {
    for (size_t slot = 0;; ++slot) {
        Vi* vi;
        {
            const std::lock_guard lock(nic.mutex);
            if (slot >= nic.vis.size()) return;
            vi = nic.vis[slot];
        }
        if (vi != nullptr) visit(*vi);
    }
}

// Polls every group of the NIC once; a group that another thread polls at this moment is skipped.
void poll_everything(Nic& nic);

// What an empty poll does every so often: the round above, and the processor to others where they need it
// (programs poll without ever yielding: spec/compat T16).
void poll_idle(Nic& nic);

bool add_group(Nic& nic, PollGroup& poll);     // makes the provider's group
void remove_group(Nic& nic, PollGroup& poll);  // ends it

}  // namespace viaduct::vipl
