// SPDX-License-Identifier: BSD-2-Clause
// The handler thread of one NIC handle: calls the program's error handler and its notify handlers, one at a
// time. It is started by the first event, and sleeps while there is nothing. It holds no
// lock and no pin while a handler runs, so that a handler may do anything: re-arm, close the NIC, end the
// process.
#pragma once

#include <vipl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "vipl/notify.hpp"

namespace viaduct {
struct WorkQueue;
}

namespace viaduct::vipl {

struct Nic;
struct Vi;
struct Cq;

// An asynchronous error on its way to the program.
struct AsyncError {
    VIP_ERROR_DESCRIPTOR record{};
    int64_t due = 0;     // CLOCK_MONOTONIC ns
    int64_t latest = 0;  // no later than this, however many peers end after it
    // Told only while this VI exists; CONN_LOST only if it is still in the life that ended (spec/compat Q14).
    // None: an error of the NIC.
    const Vi* vi = nullptr;
    uint32_t life = 0;
    bool only_in_this_life = false;
};

// Whether the program still has what the error is about.
bool still_wanted(const AsyncError& error);

// Errors by the time they are due. Time is an argument: no clock in here. It stays small, because a peer may cause
// errors faster than the handler takes them; and it is made of small blocks, because a large one may lie where the
// program has registered memory and has unmapped it (core/shm/own_mapping.hpp).
class ErrorQueue {
public:
    // From so many on, an error is told once to a VI, not as often as it happens.
    static constexpr size_t kMany = 1024;

    enum class Pushed : uint8_t { yes, is_there_already, no_memory };

    ErrorQueue();
    // While peers go on ending, reports of earlier ends wait for those of later ones (spec/compat Q14): the processes
    // of a large run need some time to end. A few errors need no memory.
    Pushed push(const AsyncError& error);
    // The oldest error that is due; false when there is none yet.
    bool pop_due(int64_t now, AsyncError* out);
    int64_t next_due() const;  // INT64_MAX: none
    size_t size() const { return errors_.size(); }
    void clear();

private:
    static constexpr size_t kSpare = 64;
    bool is_there(const AsyncError& error) const;
    void put_back(std::list<AsyncError>::iterator error);
    std::list<AsyncError> errors_;  // sorted by due, first in first out among equals
    std::list<AsyncError> spare_;   // at most kSpare, without a meaning
};

class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
public:
    explicit Dispatcher(Nic& nic) : nic_(nic) {}

    void set_error_handler(VIP_ERROR_HANDLER handler, VIP_PVOID context);
    // Any locks may be held.
    void report(const AsyncError& error);

    // One-shot notifications, first come first served per queue.
    VIP_RETURN arm(Vi& vi, WorkQueue& queue, VIP_VI_HANDLE handle, VIP_PVOID context,
                   VIP_VI_CALLBACK handler);
    VIP_RETURN arm(Cq& cq, VIP_CQ_HANDLE handle, VIP_PVOID context, VIP_CQ_CALLBACK handler);
    // Cancels what is armed on an object that is being destroyed.
    void disarm_vi(Vi& vi);
    void disarm_cq(Cq& cq);

    // After this no handler is begun for what was dropped; waits as close() does, for a handler of this VI
    // or CQ only. Not with a pin: the handler may be closing the NIC.
    void await_handler_of(const void* handle);

    // No handler is begun after this; waits a while for one that runs, unless called by it.
    void close();

    // Whether notifications wait for their completions. Any thread.
    bool has_armed() const { return anything_armed_.load(); }

private:
    bool ensure_thread();
    bool poke();  // false: there is no thread, and none can be had
    void wake_locked();
    void run();
    int64_t next_delivery() const;  // INT64_MAX: none
    bool deliver_error(std::unique_lock<std::mutex>& lock);
    void serve_armed(std::unique_lock<std::mutex>& lock);
    bool sleep_and_look(std::unique_lock<std::mutex>& lock, NotifyCall* call);
    bool find_ready(NotifyCall* call);
    bool take_any(NotifyCall* call);
    bool take_for(WorkQueue& queue, NotifyCall* call);
    bool take_for(Cq& cq, NotifyCall* call);
    void make(const NotifyCall& call, std::unique_lock<std::mutex>& lock);
    void begin_handler(VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq);
    void end_handler();
    void quiesce(std::unique_lock<std::mutex>& lock);

    Nic& nic_;

    // Taken before the locks of VIs and CQs; mutex_ comes after them.
    std::mutex armed_mutex_;
    std::vector<WorkQueue*> armed_queues_;
    std::vector<Cq*> armed_cqs_;
    std::atomic<bool> anything_armed_{false};

    std::mutex mutex_;
    std::condition_variable changed_;
    ErrorQueue errors_;
    int64_t undecided_until_ = 0;  // whether the process ends is looked at again then
    VIP_ERROR_HANDLER handler_ = nullptr;
    VIP_PVOID context_ = nullptr;
    bool started_ = false;
    bool closed_ = false;
    bool in_handler_ = false;
    const void* vi_in_hand_ = nullptr;  // what a handler is called for, from when that is decided
    const void* cq_in_hand_ = nullptr;
    bool in_provider_ = false;  // sleeping on the NIC
    bool poked_ = false;
    uintptr_t thread_ = 0;
};

}  // namespace viaduct::vipl
