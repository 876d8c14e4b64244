// SPDX-License-Identifier: BSD-2-Clause
// The handler thread: what it waits for and how it calls. Arming is in notify.cpp, errors are in async.cpp.
#include "vipl/dispatcher.hpp"

#include <chrono>
#include <new>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/biased_lock.hpp"
#include "vipl/exiting.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"
#include "vipl/policy.hpp"
#include "vipl/thread.hpp"

namespace viaduct::vipl {
namespace {

std::chrono::steady_clock::time_point at(int64_t ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

// mutex_ held. The thread keeps the dispatcher alive by itself: the NIC may be closed from inside a handler.
bool Dispatcher::ensure_thread() {
    if (started_) return true;
    auto* self = new (std::nothrow) std::shared_ptr<Dispatcher>(shared_from_this());
    if (self == nullptr) return false;
    const auto main = [](void* raw) {
        const std::unique_ptr<std::shared_ptr<Dispatcher>> mine(
            static_cast<std::shared_ptr<Dispatcher>*>(raw));
        (*mine)->run();
    };
    started_ = start_thread("vipl-handlers", kDefaultStack, main, self) == Status::ok;
    if (!started_) {
        delete self;
        VIADUCT_LOG(error, "handlers", "the handler thread cannot be started");
    }
    return started_;
}

void Dispatcher::wake_locked() {
    poked_ = true;
    changed_.notify_all();
    if (in_provider_) nic_.ops->wake(nic_.context);
}

bool Dispatcher::poke() {
    const std::lock_guard lock(mutex_);
    wake_locked();
    return !closed_ && ensure_thread();
}

void Dispatcher::run() {
    watch_this_thread();  // a handler may call exit()
    std::unique_lock lock(mutex_);
    thread_ = thread_identity();
    while (!closed_) {
        poked_ = false;
        if (deliver_error(lock)) continue;
        if (anything_armed_.load()) {
            serve_armed(lock);
            continue;
        }
        const int64_t due = next_delivery();
        const auto something = [&] { return poked_ || closed_; };
        if (due == INT64_MAX) {
            changed_.wait(lock, something);
        } else {
            changed_.wait_until(lock, at(due), something);
        }
    }
}

// Looks for one notification that can be made; sleeps on the NIC when there is none.
void Dispatcher::serve_armed(std::unique_lock<std::mutex>& lock) {
    // mutex_ is held and we are not closed: VipCloseNic has not begun to wait for pins.
    if (!NicPin::try_pin(nic_)) {
        changed_.wait_for(lock, std::chrono::milliseconds(1));
        return;
    }
    NotifyCall call;
    lock.unlock();
    bool ready = find_ready(&call);
    lock.lock();
    if (!ready && !poked_ && !closed_) ready = sleep_and_look(lock, &call);
    lock.unlock();
    NicPin::unpin(nic_);
    lock.lock();
    if (ready) make(call, lock);
}

bool Dispatcher::sleep_and_look(std::unique_lock<std::mutex>& lock, NotifyCall* call) {
    in_provider_ = true;
    const int64_t due = next_delivery();
    lock.unlock();
    const uint32_t key = nic_.ops->sleep_begin(nic_.context);
    heavy_barrier_process();  // pairs with the light one of complete_head, as in wait.cpp
    poll_everything(nic_);
    const bool ready = find_ready(call);
    lock.lock();
    if (!ready && !poked_ && !closed_) {
        lock.unlock();
        nic_.ops->sleep_wait(nic_.context, key, due == INT64_MAX ? kNever : due);
        lock.lock();
    }
    nic_.ops->sleep_end(nic_.context);
    in_provider_ = false;
    return ready;
}

void Dispatcher::make(const NotifyCall& call, std::unique_lock<std::mutex>& lock) {
    if (closed_) return;
    begin_handler(call.vi, call.cq);
    lock.unlock();
    if (call.vi_handler != nullptr) {
        call.vi_handler(call.context, call.nic, call.vi, call.descriptor);
    } else {
        call.cq_handler(call.context, call.nic, call.vi, call.recv_queue);
    }
    lock.lock();
    end_handler();
}

void Dispatcher::begin_handler(VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq) {
    in_handler_ = true;
    vi_in_hand_ = vi;
    cq_in_hand_ = cq;
}

void Dispatcher::end_handler() {
    in_handler_ = false;
    vi_in_hand_ = cq_in_hand_ = nullptr;
    changed_.notify_all();
}

// A handler that runs is given time to end, for the sake of programs that free its context next. Not for
// ever: it may be waiting for us.
void Dispatcher::quiesce(std::unique_lock<std::mutex>& lock) {
    if (thread_ == thread_identity()) return;
    changed_.wait_until(lock, at(now_ns() + limit_ns(TimeLimit::handler)), [&] { return !in_handler_; });
}

void Dispatcher::await_handler_of(const void* handle) {
    std::unique_lock lock(mutex_);
    if (thread_ == thread_identity()) return;
    changed_.wait_until(lock, at(now_ns() + limit_ns(TimeLimit::handler)),
                        [&] { return closed_ || (vi_in_hand_ != handle && cq_in_hand_ != handle); });
}

void Dispatcher::close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    errors_.clear();
    wake_locked();
    quiesce(lock);
}

}  // namespace viaduct::vipl
