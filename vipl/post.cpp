// SPDX-License-Identifier: BSD-2-Clause
// Hot path, any thread: handle, lock, the descriptor's own address, room, push, provider. The path of a
// program with one thread and nothing unusual stands alone at the end; everything else takes the slow path.
#include "vipl/post.hpp"

#include "core/text/code_names.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"
#include "vipl/recorded.hpp"
#include "vipl/vi.hpp"
#include "vipl/vi_state.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr uint64_t kControlBytes = sizeof(VIP_CONTROL_SEGMENT);

uint64_t bytes_of(const VIP_DESCRIPTOR* d) {
    return kControlBytes + d->CS.SegCount * sizeof(VIP_DESCRIPTOR_SEGMENT);
}

// Whether a range lies in the named region, or, for a slip in the handle, in any (spec/compat M10).
bool lies_in_memory(const Vi& vi, uint64_t address, uint64_t length, VIP_MEM_HANDLE memory) {
    const RegionView& regions = *vi.core.regions;
    switch (regions.check(memory, address, length, vi.core.ptag)) {
        case RegionCheck::ok:
            return true;
        case RegionCheck::wrong_ptag:
            return false;
        default:
            return !vi.nic->library->policy.descriptor_in_named_region &&
                   regions.find_containing(address, length, vi.core.ptag);
    }
}

// The whole answer, for descriptors that the quick test did not pass.
[[gnu::noinline, gnu::cold]] bool may_trust_slowly(const Vi& vi, const VIP_DESCRIPTOR* d,
                                                   VIP_MEM_HANDLE memory) {
    const auto address = reinterpret_cast<uintptr_t>(d);
    if (address % VIP_DESCRIPTOR_ALIGNMENT != 0) return false;
    if (!lies_in_memory(vi, address, kControlBytes, memory)) return false;
    // Too many segments are a format error of the completion; the region may well end before them.
    if (d->CS.SegCount > vi.core.max_segments) return true;
    return lies_in_memory(vi, address, bytes_of(d), memory);
}

// Nothing of a descriptor is read before its own address is known to be good (spec/descriptors 2.3).
bool may_trust(const Vi& vi, WorkQueue& q, const VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) {
    const auto address = reinterpret_cast<uintptr_t>(d);
    const bool good =
        address % VIP_DESCRIPTOR_ALIGNMENT == 0 &&
        vi.core.regions->check_and_remember(q.descriptors, memory, address, sizeof(VIP_DESCRIPTOR),
                                            vi.core.ptag) == RegionCheck::ok &&
        d->CS.SegCount <= 2;
    return good || may_trust_slowly(vi, d, memory);
}

// The same for the usual case only, in a few instructions.
inline bool may_trust_at_once(const WorkQueue& q, const VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) {
    const auto address = reinterpret_cast<uintptr_t>(d);
    return address % VIP_DESCRIPTOR_ALIGNMENT == 0 &&
           q.descriptors.covers(memory, address, sizeof(VIP_DESCRIPTOR)) && d->CS.SegCount <= 2;
}

// Neither enqueued nor completed: told by an asynchronous error (spec/descriptors 2.3). The lock is not held.
[[gnu::noinline, gnu::cold]] VIP_RETURN refuse_untrusted(Vi& vi, VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) {
    const auto address = reinterpret_cast<uintptr_t>(d);
    Cause cause;
    cause.kind = CauseKind::misaligned;
    if (address % VIP_DESCRIPTOR_ALIGNMENT == 0) {
        cause = explain_range(*vi.core.regions, memory, address, sizeof(VIP_DESCRIPTOR), vi.core.ptag, 0);
        if (cause.kind != CauseKind::other_ptag) cause.kind = CauseKind::not_registered;
    }
    cause.handle = memory;
    cause.address = address;
    break_by_program(vi, VIP_ERROR_POST_DESC, VIP_RESOURCE_DESCRIPTOR, 0, d, cause);
    return VIP_SUCCESS;
}

// spec/conformance O9: the post itself succeeds. `q` tells which queue ran over.
[[gnu::noinline, gnu::cold]] VIP_RETURN refuse_overrun(Vi& vi, const WorkQueue& q, VIP_DESCRIPTOR* d) {
    Cause cause;
    cause.kind = CauseKind::queue_full;
    cause.operation = q.is_receive ? CauseOperation::receive : CauseOperation::send;
    cause.high = q.depth();
    break_by_program(vi, VIP_ERROR_VI_OVERRUN, VIP_RESOURCE_VI,
                     q.is_receive ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND, d, cause);
    return VIP_SUCCESS;
}

// A send to a VI that is not connected completes as flushed: the program is told that it is not connected. The lock
// is held.
void note_unconnected_send(Vi& vi, const WorkQueue& q) {
    const VIP_VI_STATE state = vi.state();
    if (q.is_receive || state == VIP_STATE_ERROR) return;
    note("VipPostSend", vi.public_handle(), "connect first: VipConnectRequest, VipConnectAccept or VipConnectPeerWait",
         "the VI is %s: the descriptor completes with VIP_STATUS_DESC_FLUSHED_ERROR", name_of_state(state));
}

// Not Connected: the state machine says what happens. The lock is held.
[[gnu::noinline, gnu::cold]] void post_unconnected(Vi& vi, WorkQueue& q) {
    switch (post_rule(vi.state(), q.is_receive)) {
        case PostRule::hold:
            return;
        case PostRule::hand_on:
            return vi.ops->kick_recv(vi.core);
        case PostRule::flush:
            note_unconnected_send(vi, q);
            return flush_queue(q);
    }
}

template <bool receive>
constexpr const char* kPost = receive ? "VipPostRecv" : "VipPostSend";

template <bool receive>
[[gnu::noinline, gnu::cold]] VIP_RETURN no_such_vi(VIP_VI_HANDLE handle) {
    return fail_handle(kPost<receive>, "ViHandle", handle, HandleKind::vi);
}

template <bool receive>
[[gnu::noinline, gnu::cold]] VIP_RETURN dead_handle(WorkQueue& q, VIP_VI_HANDLE handle) {
    q.lock.unlock();
    return no_such_vi<receive>(handle);
}

// Before the provider has it: the answer may be there before the call returns.
template <bool receive>
void note_post(VIP_VI_HANDLE handle, const VIP_DESCRIPTOR* d) {
    if (trace::on()) [[unlikely]]
        trace::add(receive ? What::post_recv : What::post_send, Phase::instant, handle, posted(d));
}

template <bool receive>
[[gnu::noinline]] VIP_RETURN post_in_general(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR* d,
                                             VIP_MEM_HANDLE memory) {
    if (vi == nullptr) return no_such_vi<receive>(handle);
    if (d == nullptr) return fail_null(kPost<receive>, handle, "DescriptorPtr");
    WorkQueue& q = receive ? vi->core.recv : vi->core.send;
    q.lock.lock();
    if (!vi->is(handle)) [[unlikely]]
        return dead_handle<receive>(q, handle);
    if (!may_trust(*vi, q, d, memory)) [[unlikely]] {
        q.lock.unlock();
        return refuse_untrusted(*vi, d, memory);
    }
    if (q.full()) [[unlikely]] {
        q.lock.unlock();
        return refuse_overrun(*vi, q, d);
    }
    q.push(d);
    note_post<receive>(handle, d);
    if (vi->state() == VIP_STATE_CONNECTED) [[likely]] {
        receive ? vi->ops->kick_recv(vi->core) : vi->ops->kick_send(vi->core);
    } else {
        post_unconnected(*vi, q);
    }
    q.lock.unlock();
    settle_if_broken(*vi);
    return VIP_SUCCESS;
}

template <bool receive>
inline VIP_RETURN post(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) {
    Vi* vi = find_vi(handle);
    if (vi == nullptr) [[unlikely]]
        return no_such_vi<receive>(handle);
    WorkQueue& q = receive ? vi->core.recv : vi->core.send;
    if (!q.lock.try_enter()) [[unlikely]]
        return post_in_general<receive>(vi, handle, d, memory);
    // A null descriptor lies in no region.
    if (q.open_to != handle || !may_trust_at_once(q, d, memory) || q.full()) [[unlikely]] {
        q.lock.leave();
        return post_in_general<receive>(vi, handle, d, memory);
    }
    q.push(d);
    receive ? vi->ops->kick_recv(vi->core) : vi->ops->kick_send(vi->core);
    q.lock.leave();
    settle_if_broken(*vi);
    return VIP_SUCCESS;
}

[[gnu::noinline, gnu::cold]] VIP_RETURN why_not(const Vi& vi, VIP_VI_HANDLE handle) {
    return vi.is(handle) ? VIP_NOT_DONE : fail_handle("VipxWriteNow", "ViHandle", handle, HandleKind::vi);
}

// The lock is held.
[[gnu::always_inline]] inline bool written_at_once(Vi& vi, VIP_VI_HANDLE handle, const VIPX_WRITE& write) {
    const WorkQueue& q = vi.core.send;
    return q.open_to == handle && q.posted == q.completed && vi.ops->write_now(vi.core, write) == Status::ok;
}

[[gnu::noinline]] VIP_RETURN write_in_general(Vi& vi, VIP_VI_HANDLE handle, const VIPX_WRITE& write) {
    WorkQueue& q = vi.core.send;
    const uint64_t begun = trace::on() ? trace::ticks() : 0;
    q.lock.lock();
    const bool done =
        vi.is_open_to(handle) && q.posted == q.completed && vi.ops->write_now(vi.core, write) == Status::ok;
    q.lock.unlock();
    if (done && begun != 0) [[unlikely]]
        trace::add_at(begun, What::write_now, Phase::instant, handle, uint64_t{write.FirstBytes} + write.LastBytes);
    return done ? VIP_SUCCESS : why_not(vi, handle);
}

[[gnu::noinline, gnu::cold]] VIP_RETURN not_written(Vi& vi, VIP_VI_HANDLE handle, const VIPX_WRITE& write) {
    return trace::on() ? write_in_general(vi, handle, write) : why_not(vi, handle);
}

// What is in the queue now moves, or is flushed. The lock is held.
template <bool receive>
void set_going(Vi& vi, WorkQueue& q) {
    if (vi.state() != VIP_STATE_CONNECTED)
        post_unconnected(vi, q);
    else if (receive)
        vi.ops->kick_recv(vi.core);
    else
        vi.ops->kick_send(vi.core);
}

template <bool receive>
VIP_RETURN post_batch(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors, VIP_ULONG count,
                      VIP_MEM_HANDLE memory) {
    Vi* vi = find_vi(handle);
    if (vi == nullptr) return no_such_vi<receive>(handle);
    if (descriptors == nullptr && count != 0) return fail_null(kPost<receive>, handle, "Descriptors");
    for (VIP_ULONG i = 0; i < count; i++)
        if (descriptors[i] == nullptr) return fail_null(kPost<receive>, handle, "an entry of Descriptors");
    WorkQueue& q = receive ? vi->core.recv : vi->core.send;
    q.lock.lock();
    if (!vi->is(handle)) return dead_handle<receive>(q, handle);
    VIP_ULONG done = 0;
    bool trusted = true;
    while (done < count && !q.full()) {
        VIP_DESCRIPTOR* d = descriptors[done];
        trusted = may_trust(*vi, q, d, memory);
        if (!trusted) break;
        q.push(d);
        note_post<receive>(handle, d);
        done++;
    }
    if (done != 0) set_going<receive>(*vi, q);
    q.lock.unlock();
    settle_if_broken(*vi);
    if (done == count) return VIP_SUCCESS;
    return trusted ? refuse_overrun(*vi, q, descriptors[done]) : refuse_untrusted(*vi, descriptors[done], memory);
}

}  // namespace

VIP_RETURN post_send(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) {
    return post<false>(handle, descriptor, memory);
}

VIP_RETURN post_recv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) {
    return post<true>(handle, descriptor, memory);
}

VIP_RETURN query_mapped(VIP_VI_HANDLE handle, VIP_UINT64 address, VIP_MEM_HANDLE memory, VIP_ULONG bytes, void** here) {
    Vi* vi = find_vi(handle);
    if (vi == nullptr) return fail_handle("VipxQueryMapped", "ViHandle", handle, HandleKind::vi);
    WorkQueue& q = vi->core.send;
    q.lock.lock();
    const bool mapped =
        vi->is_open_to(handle) && vi->ops->mapped_at(vi->core, memory, address, bytes, here) == Status::ok;
    q.lock.unlock();
    return mapped ? VIP_SUCCESS : why_not(*vi, handle);
}

VIP_RETURN post_send_batch(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors, VIP_ULONG count,
                           VIP_MEM_HANDLE memory) {
    return post_batch<false>(handle, descriptors, count, memory);
}

VIP_RETURN post_recv_batch(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors, VIP_ULONG count,
                           VIP_MEM_HANDLE memory) {
    return post_batch<true>(handle, descriptors, count, memory);
}

}  // namespace viaduct::vipl

using namespace viaduct::vipl;

// Past the queue, or not at all; exported.
VIP_RETURN VipxWriteNow(VIP_VI_HANDLE ViHandle, const VIPX_WRITE* Write) {
    if (Write == nullptr) [[unlikely]]
        return fail_null("VipxWriteNow", ViHandle, "Write");
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr) [[unlikely]]
        return fail_handle("VipxWriteNow", "ViHandle", ViHandle, viaduct::HandleKind::vi);
    viaduct::WorkQueue& q = vi->core.send;
    if (!q.lock.try_enter()) [[unlikely]]
        return write_in_general(*vi, ViHandle, *Write);
    const bool done = written_at_once(*vi, ViHandle, *Write);
    q.lock.leave();
    return done ? VIP_SUCCESS : not_written(*vi, ViHandle, *Write);
}
