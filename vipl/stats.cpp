// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/stats.hpp"

#include <fmt/format.h>

#include "core/trace/probe.hpp"
#include "vipl/nic.hpp"
#include "vipl/recorded.hpp"

namespace viaduct::vipl {

using stats::FieldKind;
using stats::process_stats;
using stats::ProcessCount;

void* vi_records(uint32_t bytes, uint32_t* count) { return process_stats.records(bytes, count); }

namespace {

// Tells readers where in a Vi each field lies.
class Description {
public:
    explicit Description(const Vi& sample) : sample_(sample) {}

    template <class T>
    void field(const char* name, const char* help, FieldKind kind, const T& where) {
        process_stats.describe(name, help, kind, &sample_, &where, sizeof where);
    }

    void queue(const WorkQueue& q, const char* const (&names)[6]) {
        field(names[0], "descriptors posted so far", FieldKind::counter, q.posted);
        field(names[1], "of them completed", FieldKind::counter, q.completed);
        field(names[2], "of them handed back to the program", FieldKind::counter, q.dequeued);
        field(names[3], "threads or notifications that sleep on it", FieldKind::number, q.sleepers);
        const ViStats::Waiting& w = q.vi->stats.waiting[q.is_receive ? 1 : 0];
        field(names[4], "number of the descriptor last polled and found incomplete", FieldKind::number, w.position);
        field(names[5], "since when", FieldKind::time, w.since);
    }

private:
    const Vi& sample_;
};

void describe(const Vi& vi) {
    Description d(vi);
    const ViStats& s = vi.core.stats;
    d.field("handle", "handle that the program has; 0: no VI", FieldKind::number, vi.handle);
    d.field("state", "VIP_VI_STATE", FieldKind::number, vi.core.state);
    d.field("reliability", "VIP_SERVICE_...", FieldKind::number, vi.core.traits.reliability);
    d.field("max_transfer", "largest message", FieldKind::number, vi.core.max_transfer);
    d.field("changed_at", "last change of state", FieldKind::time, s.changed_at);
    d.field("nic", "NIC", FieldKind::text, s.nic);
    d.field("local", "own address and discriminator", FieldKind::text, s.local);
    d.field("peer", "the other end's", FieldKind::text, s.peer);
    d.queue(vi.core.send, {"send_posted", "send_completed", "send_fetched", "send_sleepers",
                           "send_waited_for", "send_waited_since"});
    d.queue(vi.core.recv, {"recv_posted", "recv_completed", "recv_fetched", "recv_sleepers",
                           "recv_waited_for", "recv_waited_since"});
    d.field("credits", "receives of the peer left when last looked", FieldKind::number, s.credits);
    d.field("last_error", "VIP_ERROR_CODE and 1; 0: none", FieldKind::number, s.last_error);
    d.field("last_error_at", "when", FieldKind::time, s.last_error_at);
    for (size_t i = 0; i < kViCountKinds; ++i)
        d.field(kViCounters[i].name, kViCounters[i].help, FieldKind::counter, s.counts[i]);
}

}  // namespace

void show_vi(Vi& vi) {
    vi.core.stats.clear();
    ViStats::set_text(vi.core.stats.nic, vi.nic->info.name);
    std::call_once(vi.nic->library->vis_described, [&vi] { describe(vi); });
}

void show_ends(Vi& vi, const EndAddress& local, const EndAddress& remote) {
    vi.marks = marks_of(local, remote);
    ViStats::set_text(vi.core.stats.local, text_of(local));
    ViStats::set_text(vi.core.stats.peer, text_of(remote));
}

void note_attempt(Vi& vi, bool connected) {
    vi.core.stats.note_state();
    if (connected) process_stats.count(ProcessCount::connected);
    VIADUCT_PROBE2(connect_done, vi.handle.load(std::memory_order_relaxed), connected ? 1 : 0);
}

void note_error(Vi& vi, VIP_ERROR_CODE code) {
    vi.core.stats.note_error(static_cast<uint32_t>(code));
    VIADUCT_PROBE2(async_error, vi.handle.load(std::memory_order_relaxed), static_cast<int>(code));
}

void note_sleep(Vi& vi, WorkQueue& q, bool begins) {
    const uintptr_t handle = vi.handle.load(std::memory_order_relaxed);
    if (begins) {
        vi.core.stats.count(ViCount::sleeps);
        q.lock.lock();
        const auto completed = q.completed;
        q.lock.unlock();
        vi.core.stats.note_waiting(q.is_receive, completed);
        VIADUCT_PROBE2(sleep_begin, handle, q.is_receive);
    } else {
        VIADUCT_PROBE2(sleep_end, handle, q.is_receive);
    }
}

void note_cq_sleep(VIP_CQ_HANDLE cq, bool begins) {
    if (begins) {
        VIADUCT_PROBE1(cq_sleep_begin, cq);
    } else {
        VIADUCT_PROBE1(cq_sleep_end, cq);
    }
}

}  // namespace viaduct::vipl
