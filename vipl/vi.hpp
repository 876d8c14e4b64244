// SPDX-License-Identifier: BSD-2-Clause
// A VI as the user agent sees it: the core that it shares with the provider, and what the calls need besides.
#pragma once

#include <vipl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/sync/atomic_equals.hpp"
#include "core/trace/ring.hpp"
#include "core/vi/vi_core.hpp"
#include "viaduct/provider.hpp"
#include "vipl/library.hpp"

namespace viaduct::vipl {

struct Nic;
struct Cq;
struct Ptag;

// A notification that waits for its completion (VipSendNotify, VipRecvNotify). One-shot.
struct ArmedVi {
    VIP_PVOID context = nullptr;
    VIP_VI_CALLBACK handler = nullptr;
};

// What the user agent keeps beside each work queue. All but `armed` under the queue's lock, `armed` under the
// dispatcher's.
struct QueueSide {
    uint32_t empty_polls = 0;
    bool waiting = false;  // a thread is in SendWait or RecvWait
    bool told_empty = false;       // a wait on the empty queue has been reported
    uint32_t told_timeout_at = 0;  // number of the descriptor, and 1, whose timeout was reported
    std::deque<ArmedVi> armed;
};

// A connection attempt. The state CONNECT_PENDING and this record begin and end together.
struct Attempt {
    std::mutex mutex;
    std::condition_variable changed;
    ConnectOp* op = nullptr;  // of a peer request between two calls
    bool active = false;
    bool peer = false;                  // begun by VipConnectPeerRequest
    bool busy = false;                  // some thread is inside the provider for it
    bool awaited = false;               // and stays there until the attempt is decided
    uint32_t turn = 0;                  // counts threads that were inside
    Deadline deadline = kNever;         // of a peer request, as the program gave it
    std::atomic<bool> given_up{false};  // VipDisconnect or VipCloseNic ends it
};

struct Vi {
    ViCore core;

    std::atomic<uintptr_t> handle{0};
    const DataOps* ops = nullptr;
    Nic* nic = nullptr;
    std::atomic<VIP_PVOID> user_data{nullptr};

    // Under both queue locks.
    VIP_VI_ATTRIBUTES attributes{};
    Ptag* ptag = nullptr;
    Cq* send_cq = nullptr;
    Cq* recv_cq = nullptr;
    std::atomic<Cq*> full_cq{nullptr};  // the one that overflowed
    std::atomic<uint32_t> life{0};  // counts returns to Idle: tells late errors that their connection is over

    uint64_t marks = 0;  // hashes of both ends' addresses, for the record of the process
    VIP_DESCRIPTOR nowhere{};  // where a killed VI completes what is left

    QueueSide send_side;
    QueueSide recv_side;
    Attempt attempt;

    VIP_VI_STATE state() const {
        return static_cast<VIP_VI_STATE>(core.state.load(std::memory_order_relaxed));
    }
    // Both queue locks held. Hot calls look only at WorkQueue::open_to: the handle and the state at once, and that the
    // process is not recorded (vipl/recorded.hpp).
    void set_state(VIP_VI_STATE now) {
        core.state.store(now);
        const void* open_to = now == VIP_STATE_CONNECTED && !trace::on() ? public_handle() : nullptr;
        core.recv.open_to = core.send.open_to = open_to;
    }
    // The same where there is time. The lock of a queue is held.
    bool is_open_to(const void* wanted) const { return is(wanted) && state() == VIP_STATE_CONNECTED; }
    bool is(const void* wanted) const { return atomic_equals(handle, reinterpret_cast<uintptr_t>(wanted)); }
    VIP_VI_HANDLE public_handle() const { return reinterpret_cast<VIP_VI_HANDLE>(handle.load()); }
    QueueSide& side_of(const WorkQueue& q) { return q.is_receive ? recv_side : send_side; }
    static Vi& of(ViCore& core) { return *static_cast<Vi*>(core.owner); }
};

inline Vi* find_vi(VIP_VI_HANDLE handle) {
    return static_cast<Vi*>(handle_table.find(handle, HandleKind::vi));
}

// Both queue locks, in the one order there is.
class BothQueues {
public:
    explicit BothQueues(ViCore& core) : core_(core) {
        core_.recv.lock.lock();
        core_.send.lock.lock();
    }
    ~BothQueues() {
        core_.send.lock.unlock();
        core_.recv.lock.unlock();
    }
    BothQueues(const BothQueues&) = delete;
    BothQueues& operator=(const BothQueues&) = delete;

private:
    ViCore& core_;
};

VIP_RETURN create_vi(Nic& nic, const VIP_VI_ATTRIBUTES& attributes, VIP_CQ_HANDLE send_cq,
                     VIP_CQ_HANDLE recv_cq, VIP_VI_HANDLE* out);
VIP_RETURN destroy_vi(Vi& vi, VIP_VI_HANDLE handle);
VIP_RETURN query_vi(Vi& vi, VIP_VI_HANDLE handle, VIP_VI_STATE* state, VIP_VI_ATTRIBUTES* attributes,
                    VIP_BOOLEAN* send_empty, VIP_BOOLEAN* recv_empty);
VIP_RETURN set_vi_attributes(Vi& vi, VIP_VI_HANDLE handle, const VIP_VI_ATTRIBUTES& attributes);

// Before this end ends a connection: what has arrived completes its receives, and the peer gets what it can still take,
// until then. No lock held.
void finish_traffic(Vi& vi, uintptr_t handle, Deadline until);

// The way to Idle from everywhere (VipDisconnect).
VIP_RETURN disconnect_vi(Vi& vi, VIP_VI_HANDLE handle);

// For VipCloseNic: the peer gets what it can still take of what was sent. Memory that the program has given up is not
// touched (spec/compat M11).
void finish_sends(Vi& vi, Deadline until);

// For VipCloseNic: the handle dies, the peer is told, no byte of the program's memory is touched (spec/compat
// M11).
void kill_vi(Vi& vi);
// Gives a killed or destroyed VI's parts back; no call is inside any more.
void release_vi(Vi& vi);

// The services of ViEvents; the table is in vi_events.cpp.
extern const ViEvents vi_events;

// Carries out a break that was marked. No VI lock may be held.
void settle(Vi& vi);
inline bool is_broken(const Vi& vi) { return atomic_equals(vi.core.broken, 2u); }
inline void settle_if_broken(Vi& vi) {
    if (is_broken(vi)) [[unlikely]]
        settle(vi);
}

// The program's own mistake (POST_DESC, VI_OVERRUN): marks, ends an attempt under way, settles.
void break_by_program(Vi& vi, VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_ULONG opcode,
                      VIP_DESCRIPTOR* descriptor, const Cause& cause);

}  // namespace viaduct::vipl
