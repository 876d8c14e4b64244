// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous errors: queued by any thread, reported to the program by the handler thread, one at a time, when they
// are due.
#include <algorithm>
#include <exception>
#include <iterator>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/stats/process_stats.hpp"
#include "core/text/code_names.hpp"
#include "core/trace/ring.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/exiting.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {
namespace {

constexpr int64_t kDoubtPause = 2'000'000;  // no event says how it ends

}  // namespace

ErrorQueue::ErrorQueue() : spare_(kSpare) {}

bool ErrorQueue::is_there(const AsyncError& error) const {
    return std::any_of(errors_.begin(), errors_.end(), [&](const AsyncError& other) {
        return other.vi == error.vi && other.life == error.life &&
               other.record.ViHandle == error.record.ViHandle && other.record.CQHandle == error.record.CQHandle &&
               other.record.ErrorCode == error.record.ErrorCode;
    });
}

ErrorQueue::Pushed ErrorQueue::push(const AsyncError& error) try {
    if (errors_.size() >= kMany && is_there(error)) return Pushed::is_there_already;
    if (spare_.empty()) spare_.emplace_back();
    if (error.only_in_this_life) {
        for (AsyncError& other : errors_)
            if (other.only_in_this_life) other.due = std::max(other.due, std::min(error.due, other.latest));
        errors_.sort([](const AsyncError& a, const AsyncError& b) { return a.due < b.due; });  // stable, no memory
    }
    auto after = errors_.end();
    while (after != errors_.begin() && std::prev(after)->due > error.due) --after;
    spare_.front() = error;
    errors_.splice(after, spare_, spare_.begin());
    return Pushed::yes;
} catch (const std::exception&) {
    return Pushed::no_memory;
}

bool ErrorQueue::pop_due(int64_t now, AsyncError* out) {
    if (errors_.empty() || errors_.front().due > now) return false;
    *out = errors_.front();
    put_back(errors_.begin());
    return true;
}

void ErrorQueue::put_back(std::list<AsyncError>::iterator error) {
    if (spare_.size() < kSpare)
        spare_.splice(spare_.begin(), errors_, error);
    else
        errors_.erase(error);
}

void ErrorQueue::clear() {
    while (!errors_.empty()) put_back(errors_.begin());
}

int64_t ErrorQueue::next_due() const { return errors_.empty() ? INT64_MAX : errors_.front().due; }

bool still_wanted(const AsyncError& error) {
    if (error.vi == nullptr) return true;
    // A VI that is being destroyed has no handle any more.
    if (error.record.ViHandle == nullptr || error.vi->public_handle() != error.record.ViHandle) return false;
    return !error.only_in_this_life || error.vi->life.load() == error.life;
}

void Dispatcher::set_error_handler(VIP_ERROR_HANDLER handler, VIP_PVOID context) {
    std::unique_lock lock(mutex_);
    handler_ = handler;
    context_ = context;
    quiesce(lock);
}

int64_t Dispatcher::next_delivery() const { return std::max(errors_.next_due(), undecided_until_); }

void Dispatcher::report(const AsyncError& error) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const ErrorQueue::Pushed pushed = errors_.push(error);
    if (pushed != ErrorQueue::Pushed::yes) stats::process_stats.count(stats::ProcessCount::async_unheard);
    if (pushed == ErrorQueue::Pushed::no_memory) {
        VIADUCT_LOG(error, "async", "asynchronous error %s, VI %p: no memory to tell it",
                    name_of_error(static_cast<uint32_t>(error.record.ErrorCode)).name, error.record.ViHandle);
    }
    ensure_thread();
    wake_locked();
}

// Called by the handler thread with mutex_; true when it has done something.
bool Dispatcher::deliver_error(std::unique_lock<std::mutex>& lock) {
    const int64_t now = now_ns();
    if (errors_.next_due() > now) return false;
    const ProcessEnd end = process_end();
    if (end == ProcessEnd::undecided) {
        undecided_until_ = now + kDoubtPause;  // all of them wait, so that they keep their order
        return false;
    }
    AsyncError error;
    errors_.pop_due(now, &error);
    // Not while the process ends, and not for a connection the program has ended itself (spec/compat Q14,
    // Q17).
    if (end == ProcessEnd::certain || !still_wanted(error)) {
        stats::process_stats.count(stats::ProcessCount::async_unheard);
        return true;
    }
    const VIP_ERROR_HANDLER handler = handler_;
    const VIP_PVOID context = context_;
    if (handler == nullptr) {
        stats::process_stats.count(stats::ProcessCount::async_unheard);
        // The default handler: silent unless the log is on. Why is in the record of the VI (vipl/why.hpp).
        VIADUCT_LOG(warn, "async", "asynchronous error %s, VI %p: no handler",
                    name_of_error(static_cast<uint32_t>(error.record.ErrorCode)).name, error.record.ViHandle);
        return true;
    }
    stats::process_stats.count(stats::ProcessCount::async_told);
    begin_handler(error.record.ViHandle, error.record.CQHandle);
    lock.unlock();
    if (trace::on())
        trace::add(trace::What::async_error, trace::Phase::instant, error.record.ViHandle,
                   static_cast<uint64_t>(error.record.ErrorCode));
    handler(context, &error.record);
    lock.lock();
    end_handler();
    return true;
}

}  // namespace viaduct::vipl
