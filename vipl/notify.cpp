// SPDX-License-Identifier: BSD-2-Clause
// One-shot notifications (VipSendNotify, VipRecvNotify, VipCQNotify): arming, and finding one that is ready.
// An armed notification counts as a sleeper of its queue, so that completions wake the handler thread.
#include "vipl/notify.hpp"

#include <algorithm>

#include "vipl/completion.hpp"
#include "vipl/cq.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/recorded.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

VIP_RETURN Dispatcher::arm(Vi& vi, WorkQueue& queue, VIP_VI_HANDLE handle, VIP_PVOID context,
                           VIP_VI_CALLBACK handler) {
    const std::lock_guard lock(armed_mutex_);
    if (!vi.is(handle)) return refuse_vi(handle);
    if (queue.cq != nullptr)  // spec/conformance O2
        return refuse(VIP_ERROR_RESOURCE, "VipCQNotify on that completion queue",
                      "the %s queue was attached to a completion queue when the VI was created",
                      queue.is_receive ? "receive" : "send");
    auto& armed = vi.side_of(queue).armed;
    armed_queues_.reserve(armed_queues_.size() + 1);  // memory runs short before anything has changed
    armed.push_back({context, handler});
    if (armed.size() == 1) armed_queues_.push_back(&queue);
    queue.sleepers.fetch_add(1);
    anything_armed_.store(true);
    if (poke()) return VIP_SUCCESS;
    armed.pop_back();  // refused, so the handler must never be called; no other thread can have taken it meanwhile
    queue.sleepers.fetch_sub(1);
    if (armed.empty()) std::erase(armed_queues_, &queue);
    return refuse(VIP_ERROR_RESOURCE, "look at ulimit -u and the limits of the cgroup", "no thread for handlers");
}

VIP_RETURN Dispatcher::arm(Cq& cq, VIP_CQ_HANDLE handle, VIP_PVOID context, VIP_CQ_CALLBACK handler) {
    const std::lock_guard lock(armed_mutex_);
    if (!cq.is(handle)) return refuse_cq(handle);
    armed_cqs_.reserve(armed_cqs_.size() + 1);
    cq.armed.push_back({context, handler});
    if (cq.armed.size() == 1) armed_cqs_.push_back(&cq);
    cq.target.sleepers.fetch_add(1);
    anything_armed_.store(true);
    if (poke()) return VIP_SUCCESS;
    cq.armed.pop_back();
    cq.target.sleepers.fetch_sub(1);
    if (cq.armed.empty()) std::erase(armed_cqs_, &cq);
    return refuse(VIP_ERROR_RESOURCE, "look at ulimit -u and the limits of the cgroup", "no thread for handlers");
}

void Dispatcher::disarm_vi(Vi& vi) {
    const std::lock_guard lock(armed_mutex_);
    for (WorkQueue* queue : {&vi.core.send, &vi.core.recv}) {
        vi.side_of(*queue).armed.clear();
        std::erase(armed_queues_, queue);
    }
}

void Dispatcher::disarm_cq(Cq& cq) {
    const std::lock_guard lock(armed_mutex_);
    cq.armed.clear();
    std::erase(armed_cqs_, &cq);
}

// The head of a queue for its oldest notification. armed_mutex_ held, so that two of them cannot swap their
// completions.
bool Dispatcher::take_for(WorkQueue& queue, NotifyCall* call) {
    Vi& vi = Vi::of(*queue.vi);
    const VIP_VI_HANDLE handle = vi.public_handle();
    if (handle == nullptr) return false;
    VIP_RETURN answer;
    {
        const PartOfCall notification;
        answer = queue.is_receive ? recv_done(handle, &call->descriptor) : send_done(handle, &call->descriptor);
    }
    if (call->descriptor == nullptr) return false;
    if (trace::on())
        note_fetched(queue.is_receive ? What::recv_notify : What::send_notify, handle, answer, call->descriptor);
    auto& armed = vi.side_of(queue).armed;
    call->vi_handler = armed.front().handler;
    call->context = armed.front().context;
    call->nic = nic_.public_handle();
    call->vi = handle;
    armed.pop_front();
    queue.sleepers.fetch_sub(1);
    if (armed.empty()) std::erase(armed_queues_, &queue);
    return true;
}

bool Dispatcher::take_for(Cq& cq, NotifyCall* call) {
    const VIP_CQ_HANDLE handle = cq.public_handle();
    if (handle == nullptr || cq_take(cq, handle, &call->vi, &call->recv_queue) != VIP_SUCCESS) return false;
    call->cq_handler = cq.armed.front().handler;
    call->context = cq.armed.front().context;
    call->nic = nic_.public_handle();
    call->cq = handle;
    cq.armed.pop_front();
    cq.target.sleepers.fetch_sub(1);
    if (cq.armed.empty()) std::erase(armed_cqs_, &cq);
    return true;
}

bool Dispatcher::take_any(NotifyCall* call) {
    for (WorkQueue* queue : armed_queues_) {
        if (take_for(*queue, call)) return true;
    }
    for (Cq* cq : armed_cqs_) {
        if (take_for(*cq, call)) return true;
    }
    return false;
}

bool Dispatcher::find_ready(NotifyCall* call) {
    const std::lock_guard lock(armed_mutex_);
    if (!take_any(call)) {
        anything_armed_.store(!armed_queues_.empty() || !armed_cqs_.empty());
        return false;
    }
    // Known before its object can be destroyed, so that the destroying call waits for the handler.
    const std::lock_guard decided(mutex_);
    vi_in_hand_ = call->vi;
    cq_in_hand_ = call->cq;
    return true;
}

}  // namespace viaduct::vipl
