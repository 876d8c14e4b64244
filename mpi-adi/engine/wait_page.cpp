// SPDX-License-Identifier: BSD-2-Clause
// The writing side of wait_page.hpp.
#include "mpi-adi/engine/wait_page.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/process/never_destroyed.hpp"
#include "core/shm/segment.hpp"
#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi {
namespace {

WaitPage* page = nullptr;
pid_t page_owner = 0;  // beside it: a forked child has the page no more

// Also in a child of _Fork(), which runs no handlers.
bool has_page() {
    if (page != nullptr && page_owner != ::getpid()) page = nullptr;
    return page != nullptr;
}

// Never unmapped: a program may leave from anywhere.
NeverDestroyed<Segment> kept_page;

WaitRecord* take_free_record() {
    for (WaitRecord& record : page->records) {
        uint32_t turn = record.turn.load(std::memory_order_relaxed);
        if ((turn & 1) == 0 && record.turn.compare_exchange_strong(turn, turn + 1)) return &record;
    }
    return nullptr;
}

// A reader that comes now sees an odd turn and time 0: not written yet.
void hide_record(WaitRecord& record) { std::atomic_ref<int64_t>(record.since).store(0, std::memory_order_release); }
void show_since(WaitRecord& record, int64_t since) {
    std::atomic_ref<int64_t>(record.since).store(since, std::memory_order_release);
}

// Fills all fields but the time. The record is hidden.
void fill_record(WaitRecord& record, const Awaited& what) {
    record.kind = static_cast<uint32_t>(what.kind);
    record.context = what.context;
    record.bytes = what.bytes;
    record.tag = what.tag;
    record.any = what.any ? 1 : 0;
    record.count = what.count;
    record.threads = EngineLock::enabled() ? 1 : 0;
    std::copy_n(what.peers, std::min(what.count, kMostPeers), record.peers);
    std::snprintf(record.transport, sizeof record.transport, "%s", what.transport);
    std::snprintf(record.communicator, sizeof record.communicator, "%s", name_of_context(what.context).c_str());
}

// A forked child with a page of its own does not write into a record of its parent.
bool is_ours(const WaitRecord* record) {
    return page != nullptr && record >= page->records && record < page->records + kWaitRecords;
}

}  // namespace

ShownAsking shown_asking;

void open_wait_page() {
    if (page != nullptr) return;
    Segment fresh = Segment::create(kWaitPageName, sizeof(WaitPage), Segment::Access::read_only);
    if (!fresh.valid()) return;
    kept_page->reset_after_fork();  // the parent's
    *kept_page = std::move(fresh);
    auto* const made = new (kept_page->data()) WaitPage{};
    made->pid = static_cast<uint32_t>(::getpid());
    made->rank = world().rank;
    made->size = world().size;
    made->number = world().numbers[0];
    std::atomic_ref<uint64_t>(made->magic).store(kWaitPageMagic, std::memory_order_release);
    page_owner = ::getpid();
    page = made;
    static const int handled = ::pthread_atfork(nullptr, nullptr, [] { page = nullptr; });
    (void)handled;
}

void ShownWait::write(const Awaited& what) {
    if (!has_page()) return;
    WaitRecord* const record = take_free_record();
    if (record == nullptr) return;
    hide_record(*record);
    record->asks.store(0, std::memory_order_relaxed);
    fill_record(*record, what);
    show_since(*record, now_ns());
    record_ = record;
}

// A child that was forked inside a wait has no record to end.
void ShownWait::end() {
    if (has_page()) record_->turn.fetch_add(1, std::memory_order_release);
}

// A reader that sees the count sees what was counted before it.
void ShownWait::count_idle_pass() {
    if (page != nullptr) page->idle_passes.fetch_add(1, std::memory_order_release);
}

void ShownAsking::write(const Awaited& what, bool is_new) {
    if (!has_page()) return;
    if (!is_ours(record_)) record_ = nullptr;
    if (record_ == nullptr) {
        record_ = take_free_record();
        if (record_ == nullptr) return;
        hide_record(*record_);
        record_->asks.store(1, std::memory_order_relaxed);
        is_new = true;
    } else if (is_new) {
        hide_record(*record_);
        record_->turn.fetch_add(2, std::memory_order_release);
    }
    const int64_t since = is_new ? now_ns() : record_->since;
    hide_record(*record_);
    fill_record(*record_, what);
    show_since(*record_, since);
}

// Called with the engine's lock held. The count passes over 0, which says that a thread waits in a call.
void ShownAsking::count() {
    if (!is_ours(record_)) return;
    const uint32_t next = record_->asks.load(std::memory_order_relaxed) + 1;
    record_->asks.store(next != 0 ? next : 1, std::memory_order_relaxed);
}

void count_moving_pass() {
    if (page != nullptr) page->moving_passes.fetch_add(1, std::memory_order_release);
}

}  // namespace viaduct::mpi
