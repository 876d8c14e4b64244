// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/wait.hpp"

#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "core/wait/crowd_score.hpp"
#include "core/wait/spin_wait.hpp"
#include "vipl/completion.hpp"
#include "vipl/cq.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"
#include "vipl/sleeping_call.hpp"
#include "vipl/stats.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr int kQuickLooks = 64;  // about 3 us
constexpr int64_t kSoonPartOfSleep = 4;  // a new wait that begins within a quarter of the sleep before it follows soon

// The last wait of this thread that slept until its deadline. A wait on the same object that begins soon after it, by
// the length of that sleep, skips the spinning, so a program that waits a millisecond at a time uses no more processor
// time than one that waits for ever, whatever it looks at in between.
struct LastTimeout {
    const void* object = nullptr;
    int64_t ended = 0;
    int64_t slept = 0;
};
thread_local LastTimeout last_timeout;

bool follows_timeout(const void* object, int64_t spin_ns) {
    return last_timeout.object == object &&
           now_ns() - last_timeout.ended < std::max(spin_ns, last_timeout.slept / kSoonPartOfSleep);
}

// `attempt` answers NOT_DONE as long as there is nothing, and finds out by itself that its object has died.
// `sleepers` is what completions look at to see whether a thread has to be woken.
// `sleeping` is told of each sleep, before and after. *waited: it has polled more than once.
template <class Try, class Sleeping>
VIP_RETURN wait_for(Nic& nic, std::atomic<uint32_t>& sleepers, Deadline deadline, Try&& attempt, Sleeping&& sleeping,
                    bool* waited) {
    const WaitThatCanSleep here;
    VIP_RETURN answer = attempt();
    if (answer == VIP_NOT_DONE && nic.library->spin_ns > 0 && !crowded()) {
        // The answer of a peer that polls is here by the end of these looks: no clock, no system call. Each
        // empty poll pauses by itself.
        for (int looks = 0; looks < kQuickLooks && answer == VIP_NOT_DONE; ++looks) answer = attempt();
    }
    if (answer != VIP_NOT_DONE) return answer;
    SpinWait spin(follows_timeout(&sleepers, nic.library->spin_ns) ? 0 : nic.library->spin_ns);
    int64_t slept_since = 0;  // 0: not at all
    while (answer == VIP_NOT_DONE) {
        const int64_t now = now_ns();
        if (now >= deadline) {
            // A thread that got no processor for long has not looked for as long.
            if ((answer = attempt()) != VIP_NOT_DONE) return answer;
            if (slept_since != 0) last_timeout = {&sleepers, now, now - slept_since};
            return VIP_TIMEOUT;
        }
        *waited = true;
        if (spin.step()) {
            answer = attempt();
            continue;
        }
        if (slept_since == 0) slept_since = now;
        sleepers.fetch_add(1);
        const uint32_t key = nic.ops->sleep_begin(nic.context);
        // A completion made by another thread here either sees `sleepers` or is seen by the look that
        // follows.
        heavy_barrier_process();
        nic.library->poll_open();
        answer = attempt();
        if (answer == VIP_NOT_DONE) {
            sleeping(true);
            nic.ops->sleep_wait(nic.context, key, deadline);
            sleeping(false);
        }
        nic.ops->sleep_end(nic.context);
        sleepers.fetch_sub(1);
        if (answer == VIP_NOT_DONE) answer = attempt();
    }
    return answer;
}

const char* queue_name(const WorkQueue& q) { return q.is_receive ? "receive" : "send"; }

// One waiter per queue; false when there is one, or when the queue has a completion queue (spec/conformance O2).
bool become_waiter(Vi& vi, WorkQueue& q, VIP_VI_HANDLE handle, VIP_RETURN* answer) {
    q.lock.lock();
    if (!vi.is(handle)) {
        *answer = VIP_INVALID_PARAMETER;
    } else if (q.cq != nullptr || vi.side_of(q).waiting) {
        *answer = VIP_ERROR_RESOURCE;
    } else {
        vi.side_of(q).waiting = true;
        *answer = VIP_SUCCESS;
    }
    q.lock.unlock();
    return *answer == VIP_SUCCESS;
}

[[gnu::cold, gnu::noinline]] VIP_RETURN refuse_wait(const char* name, VIP_VI_HANDLE handle, const WorkQueue& q,
                                                    VIP_RETURN answer) {
    if (answer == VIP_INVALID_PARAMETER) return fail_handle(name, "ViHandle", handle, HandleKind::vi);
    Call call(name, handle);
    if (q.cq != nullptr)
        return call.end(refuse(answer, "wait with VipCQWait on that completion queue, then VipSendDone or VipRecvDone",
                               "the %s queue was attached to a completion queue when the VI was created",
                               queue_name(q)));
    return call.end(refuse(answer, "let one thread wait on each queue, or use a completion queue",
                           "another thread waits on the %s queue already", queue_name(q)));
}

template <bool receive>
constexpr const char* kWait = receive ? "VipRecvWait" : "VipSendWait";

template <bool receive>
VIP_RETURN wait_on_queue(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out) {
    *out = nullptr;
    Vi* vi = find_vi(handle);
    if (vi == nullptr) return fail_handle(kWait<receive>, "ViHandle", handle, HandleKind::vi);
    const NicPin pin(vi->nic, vi->handle, handle);
    if (!pin) return fail_handle(kWait<receive>, "ViHandle", handle, HandleKind::vi);
    const SleepingCall here(*pin);
    WorkQueue& q = receive ? vi->core.recv : vi->core.send;
    VIP_RETURN answer;
    bool waited = false;
    if (!become_waiter(*vi, q, handle, &answer)) return refuse_wait(kWait<receive>, handle, q, answer);
    answer = wait_for(
        *pin, q.sleepers, deadline, [&] { return receive ? recv_done(handle, out) : send_done(handle, out); },
        [&](bool begins) { note_sleep(*vi, q, begins); }, &waited);
    q.lock.lock();
    if (vi->is(handle)) {
        vi->side_of(q).waiting = false;
        if (answer == VIP_TIMEOUT && waited) fail_timeout(kWait<receive>, *vi, q);
    }
    q.lock.unlock();
    return answer;
}

}  // namespace

VIP_RETURN send_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out) {
    return wait_on_queue<false>(handle, deadline, out);
}

VIP_RETURN recv_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out) {
    return wait_on_queue<true>(handle, deadline, out);
}

VIP_RETURN cq_wait(VIP_CQ_HANDLE handle, Deadline deadline, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue) {
    Cq* cq = find_cq(handle);
    if (cq == nullptr) return fail_handle("VipCQWait", "CQHandle", handle, HandleKind::cq);
    const NicPin pin(cq->nic, cq->handle, handle);
    if (!pin) return fail_handle("VipCQWait", "CQHandle", handle, HandleKind::cq);
    const SleepingCall here(*pin);
    bool waited = false;
    const VIP_RETURN answer = wait_for(
        *pin, cq->target.sleepers, deadline, [&] { return cq_take(*cq, handle, vi, recv_queue); },
        [&](bool begins) { note_cq_sleep(handle, begins); }, &waited);
    if (answer == VIP_TIMEOUT && waited) note_cq_timeout(*cq, handle);
    return answer;
}

}  // namespace viaduct::vipl
