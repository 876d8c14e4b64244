// SPDX-License-Identifier: BSD-2-Clause
// Hot path, any thread: handle, lock, head complete? else poll; every so often look around. The path of a
// program with one thread stands alone at the end; everything else takes the slow path.
#include "vipl/completion.hpp"

#include "vipl/nic.hpp"
#include "vipl/poll_backoff.hpp"
#include "vipl/recorded.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr uint32_t kEmptyPollsBetweenRounds = 64;

inline VIP_RETURN hand_out(WorkQueue& q, VIP_DESCRIPTOR** out) {
    bool in_error;
    *out = q.dequeue(&in_error);
    return in_error ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

// The head as it is now. Lock held.
inline VIP_RETURN look(WorkQueue& q, VIP_DESCRIPTOR** out) {
    if (q.head_complete()) return hand_out(q, out);
    return q.empty() ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE;  // empty: with NULL (spec/calls 4.6)
}

// The same where there is time: a wait on an empty queue is reported.
VIP_RETURN look_and_tell(Vi& vi, WorkQueue& q, VIP_DESCRIPTOR** out) {
    const VIP_RETURN answer = look(q, out);
    if (answer == VIP_DESCRIPTOR_ERROR && *out == nullptr && vi.side_of(q).waiting) note_empty_queue(vi, q);
    return answer;
}

const char* call_of(const Vi& vi, const WorkQueue& q) { return &q == &vi.core.recv ? "VipRecvDone" : "VipSendDone"; }

[[gnu::noinline, gnu::cold]] VIP_RETURN no_such_vi(VIP_VI_HANDLE handle, const char* call) {
    return fail_handle(call, "ViHandle", handle, HandleKind::vi);
}

// Without a result so far: carries out what was marked, polls the rest of the NIC, looks again.
[[gnu::noinline]] VIP_RETURN try_harder(Vi& vi, VIP_VI_HANDLE handle, WorkQueue& q, bool around,
                                        VIP_DESCRIPTOR** out) {
    settle_if_broken(vi);
    if (around) {
        const NicPin pin(vi.nic, vi.handle, handle);
        if (pin) poll_idle(*pin);
    }
    q.lock.lock();
    const bool alive = vi.is(handle);
    VIP_RETURN answer = VIP_NOT_DONE;
    if (alive) {
        if (around) vi.core.stats.note_waiting(q.is_receive, q.completed);
        answer = look_and_tell(vi, q, out);
    }
    q.lock.unlock();
    return alive ? answer : no_such_vi(handle, call_of(vi, q));
}

// A sender that waits still takes what the other side sends: both may be waiting (docs/data-path.md). The
// send lock is not held.
[[gnu::noinline]] void poll_receive_side(Vi& vi, VIP_VI_HANDLE handle) {
    WorkQueue& recv = vi.core.recv;
    if (!recv.lock.try_lock()) return;
    if (vi.is(handle) && vi.state() == VIP_STATE_CONNECTED) vi.ops->poll_recv(vi.core);
    recv.lock.unlock();
}

VIP_RETURN recv_done_slowly(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    WorkQueue& q = vi->core.recv;
    q.lock.lock();
    if (!vi->is(handle)) [[unlikely]] {
        q.lock.unlock();
        return no_such_vi(handle, "VipRecvDone");
    }
    if (!q.head_complete() && vi->state() == VIP_STATE_CONNECTED) vi->ops->poll_recv(vi->core);
    const VIP_RETURN answer = look_and_tell(*vi, q, out);
    const bool around = answer == VIP_NOT_DONE && ++vi->recv_side.empty_polls % kEmptyPollsBetweenRounds == 0;
    q.lock.unlock();
    if (vi->core.is_marked_broken() || around) [[unlikely]] {
        if (answer == VIP_NOT_DONE) return try_harder(*vi, handle, q, around, out);
        settle_if_broken(*vi);
    }
    return answer;
}

// All polls of a recorded process come here, those of a program with one thread too.
[[gnu::noinline, gnu::cold]] VIP_RETURN recv_done_recorded(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    VIP_RETURN answer = recv_done_slowly(vi, handle, out);
    if (answer == VIP_NOT_DONE && backoff_after_poll(*vi->nic, vi)) answer = recv_done_slowly(vi, handle, out);
    note_fetched(What::recv_done, handle, answer, *out);
    return answer;
}

[[gnu::noinline]] VIP_RETURN recv_done_in_general(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    if (trace::on()) [[unlikely]]
        return recv_done_recorded(vi, handle, out);
    return recv_done_slowly(vi, handle, out);
}

VIP_RETURN send_done_slowly(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    WorkQueue& q = vi->core.send;
    q.lock.lock();
    if (!vi->is(handle)) [[unlikely]] {
        q.lock.unlock();
        return no_such_vi(handle, "VipSendDone");
    }
    if (!q.head_complete() && vi->state() == VIP_STATE_CONNECTED) vi->ops->poll_send(vi->core);
    const VIP_RETURN answer = look_and_tell(*vi, q, out);
    const bool around = answer == VIP_NOT_DONE && ++vi->send_side.empty_polls % kEmptyPollsBetweenRounds == 0;
    q.lock.unlock();
    if (answer == VIP_NOT_DONE) {
        poll_receive_side(*vi, handle);
        return try_harder(*vi, handle, q, around, out);
    }
    settle_if_broken(*vi);
    return answer;
}

[[gnu::noinline]] VIP_RETURN send_done_in_general(Vi* vi, VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    const VIP_RETURN answer = send_done_slowly(vi, handle, out);
    if (trace::on()) [[unlikely]]
        note_fetched(What::send_done, handle, answer, *out);
    return answer;
}

[[gnu::noinline, gnu::cold]] VIP_RETURN settle_and_succeed(Vi& vi) {
    settle(vi);
    return VIP_SUCCESS;
}

[[gnu::noinline, gnu::cold]] VIP_RETURN hand_out_error_and_leave(Vi& vi, WorkQueue& q, VIP_DESCRIPTOR** out) {
    hand_out(q, out);
    q.lock.leave();
    settle_if_broken(vi);
    return VIP_DESCRIPTOR_ERROR;
}

// Hands out the completed head and leaves the queue, which the caller has entered as its owner.
[[gnu::always_inline]] inline VIP_RETURN hand_out_and_leave(Vi& vi, WorkQueue& q, VIP_DESCRIPTOR** out) {
    if (q.head_in_error()) [[unlikely]]
        return hand_out_error_and_leave(vi, q, out);
    hand_out(q, out);
    q.lock.leave();
    if (is_broken(vi)) [[unlikely]]
        return settle_and_succeed(vi);
    return VIP_SUCCESS;
}

[[gnu::noinline, gnu::cold]] VIP_RETURN give_way_and_look(Vi* vi, VIP_VI_HANDLE handle,
                                                          VIP_DESCRIPTOR** out) {
    give_way();
    return recv_done_in_general(vi, handle, out);
}

}  // namespace

VIP_RETURN recv_done(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    *out = nullptr;
    Vi* vi = find_vi(handle);
    if (vi == nullptr) [[unlikely]]
        return no_such_vi(handle, "VipRecvDone");
    WorkQueue& q = vi->core.recv;
    if (!q.lock.try_enter()) [[unlikely]]
        return recv_done_in_general(vi, handle, out);
    if (q.open_to == handle) [[likely]] {
        if (!q.head_complete()) [[likely]]
            vi->ops->poll_recv(vi->core);
        if (q.head_complete()) {
            vi->recv_side.empty_polls = 0;
            return hand_out_and_leave(*vi, q, out);
        }
        handle = vi->public_handle();  // what it was: not kept in a register over the poll
        // Nothing there, and nothing else to be done this time.
        if (!q.empty() && (vi->recv_side.empty_polls + 1) % kEmptyPollsBetweenRounds != 0 &&
            vi->core.broken.load(std::memory_order_relaxed) == 0) [[likely]] {
            ++vi->recv_side.empty_polls;
            q.lock.leave();
            if (must_give_way(*vi->nic)) [[unlikely]]
                return give_way_and_look(vi, handle, out);
            pause_if_polled_again(vi);
            return VIP_NOT_DONE;
        }
    }
    q.lock.leave();
    return recv_done_in_general(vi, handle, out);
}

VIP_RETURN send_done(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out) {
    *out = nullptr;
    Vi* vi = find_vi(handle);
    if (vi == nullptr) [[unlikely]]
        return no_such_vi(handle, "VipSendDone");
    WorkQueue& q = vi->core.send;
    if (!q.lock.try_enter()) [[unlikely]]
        return send_done_in_general(vi, handle, out);
    if (q.open_to == handle && q.head_complete()) [[likely]]
        return hand_out_and_leave(*vi, q, out);
    q.lock.leave();
    return send_done_in_general(vi, handle, out);
}

}  // namespace viaduct::vipl
