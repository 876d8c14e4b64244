// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/why.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/stats/failures.hpp"
#include "core/sync/cancellation.hpp"
#include "core/text/code_names.hpp"
#include "core/text/printable.hpp"
#include "vipl/cq.hpp"
#include "vipl/library.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {

using stats::Failure;
using stats::FailureKind;

namespace {

thread_local Call* current = nullptr;

// A child that was made past the fork handlers has the segment no more.
void keep(const Failure& failure) {
    if (handle_table.was_wiped() && stats::failures_are_in_segment()) stats::reset_failures();
    stats::record_failure(failure);
}

// Answers that say nothing went wrong, unless a reason was given.
bool is_ordinary(VIP_RETURN answer) {
    return answer == VIP_NOT_DONE || answer == VIP_TIMEOUT || answer == VIP_DESCRIPTOR_ERROR;
}

const char* name_of_kind(HandleKind kind) {
    switch (kind) {
        case HandleKind::nic:
            return "NIC";
        case HandleKind::vi:
            return "VI";
        case HandleKind::cq:
            return "completion queue";
        case HandleKind::ptag:
            return "protection tag";
        case HandleKind::connection:
            return "connection request";
    }
    return "object";
}

const char* name_of_queue(const WorkQueue& q) { return q.is_receive ? "receive queue" : "send queue"; }

void copy_peer(const Vi& vi, char (&to)[64]) {
    static_assert(sizeof to == ViStats::kTextBytes);
    ViStats::copy_text(vi.core.stats.peer, to);
}

}  // namespace

Call::Call(const char* called, const void* on) : name(called), object(on), outer(current) {
    peer[0] = 0;
    current = this;
}

Call::~Call() { current = outer; }

void Call::set_peer(const char* from) { std::snprintf(peer, sizeof peer, "%s", from); }

VIP_RETURN Call::end(VIP_RETURN answer) {
    if (answer == VIP_SUCCESS || (!told && is_ordinary(answer))) return answer;
    Failure failure;
    failure.call = name;
    failure.object = object;
    failure.code = answer;
    failure.text = told ? text : name_of_return(answer).meaning;
    failure.cure = told ? cure : "";
    if (const Vi* vi = find_vi(const_cast<void*>(object)); vi != nullptr && peer[0] == 0) copy_peer(*vi, peer);
    failure.peer = peer;
    keep(failure);
    return answer;
}

VIP_RETURN refuse(VIP_RETURN answer, const char* cure, const char* format, ...) {
    Call* call = current;
    if (call == nullptr || call->told) return answer;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(call->text, sizeof call->text, format, arguments);
    va_end(arguments);
    std::snprintf(call->cure, sizeof call->cure, "%s", cure);
    call->told = true;
    return answer;
}

void refuse_as_said(const char* reason, const char* cure) {
    Call* call = current;
    if (call == nullptr || call->told) return;
    copy_printable(reason, call->text);
    copy_printable(cure, call->cure);
    call->told = true;
}

void put_before_reason(const char* format, ...) {
    Call* call = current;
    if (call == nullptr || !call->told) return;
    char words[sizeof call->text];
    va_list arguments;
    va_start(arguments, format);
    const int written = std::vsnprintf(words, sizeof words - 2, format, arguments);
    va_end(arguments);
    if (written < 0 || static_cast<size_t>(written) >= sizeof words - 2) return;
    std::memcpy(words + written, ": ", 2);
    const size_t before = static_cast<size_t>(written) + 2;
    const size_t kept = std::min(std::strlen(call->text), sizeof words - 1 - before);
    std::memmove(call->text + before, call->text, kept);
    std::memcpy(call->text, words, before);
    call->text[before + kept] = 0;
}

void note(const char* name, const void* object, const char* cure, const char* format, ...) {
    char text[sizeof(stats::FailureRecord::text)];
    char peer[64] = "";
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (const Vi* vi = find_vi(const_cast<void*>(object)); vi != nullptr) copy_peer(*vi, peer);
    Failure failure;
    failure.kind = FailureKind::notice;
    failure.call = name;
    failure.object = object;
    failure.peer = peer;
    failure.text = text;
    failure.cure = cure;
    keep(failure);
}

bool is_refused() { return current != nullptr && current->told; }

VIP_RETURN refuse_handle(const char* argument, const void* handle, HandleKind wanted) {
    const char* kind = name_of_kind(wanted);
    if (handle == nullptr)
        return refuse(VIP_INVALID_PARAMETER, "pass the handle that the creating call has stored",
                      "%s is NULL, not the handle of a %s", argument, kind);
    if (handle_table.was_wiped())
        return refuse(VIP_INVALID_PARAMETER, "a forked child opens the NIC anew",
                      "%s %p was inherited by fork; handles belong to the process that made them", argument, handle);
    for (const HandleKind other :
         {HandleKind::nic, HandleKind::vi, HandleKind::cq, HandleKind::ptag, HandleKind::connection}) {
        if (other == wanted || handle_table.find(handle, other) == nullptr) continue;
        return refuse(VIP_INVALID_PARAMETER, "pass the handle of the other object; arguments may be in the wrong order",
                      "%s %p is the handle of a %s, not of a %s", argument, handle, name_of_kind(other), kind);
    }
    return refuse(VIP_INVALID_PARAMETER, "use a handle only between the call that makes it and the one that ends it",
                  "%s %p is not the handle of a live %s: it was closed, destroyed or used up, or never handed out",
                  argument, handle, kind);
}

VIP_RETURN refuse_ptag(const void* handle, const char* nic) {
    return refuse(VIP_INVALID_PTAG, "use a tag of VipCreatePtag on this NIC handle, not destroyed, or NULL",
                  "Ptag %p is not a protection tag of this handle of NIC %s", handle, nic);
}

VIP_RETURN refuse_quota(const char* what, const char* setting) {
    return refuse(VIP_ERROR_RESOURCE, "release some, or raise the setting where vipkad runs and renew vipkad",
                  "the agent grants this user no more %s (setting %s)", what, setting);
}

VIP_RETURN need(std::initializer_list<Argument> pointers) {
    for (const Argument& a : pointers)
        if (a.value == nullptr)
            return refuse(VIP_INVALID_PARAMETER, "pass the address of a variable", "%s is NULL", a.name);
    return VIP_SUCCESS;
}

VIP_RETURN fail_handle(const char* name, const char* argument, const void* handle, HandleKind wanted) {
    const CancellationHeldOff whole_call;
    Call call(name, handle);
    return call.end(refuse_handle(argument, handle, wanted));
}

VIP_RETURN fail_null(const char* name, const void* object, const char* argument) {
    const CancellationHeldOff whole_call;
    Call call(name, object);
    return call.end(need({{nullptr, argument}}));
}

void note_empty_queue(Vi& vi, const WorkQueue& q) {
    QueueSide& side = vi.side_of(q);
    if (side.told_empty || vi.state() == VIP_STATE_ERROR) return;  // there it follows from what was told before
    side.told_empty = true;
    Failure failure;
    char text[200];
    char peer[64];
    std::snprintf(text, sizeof text, "the %s is empty: %u descriptors were posted so far, and all were handed back",
                  name_of_queue(q), q.posted);
    copy_peer(vi, peer);
    failure.call = q.is_receive ? "VipRecvWait" : "VipSendWait";
    failure.object = vi.public_handle();
    failure.code = VIP_DESCRIPTOR_ERROR;
    failure.peer = peer;
    failure.text = text;
    failure.cure = q.is_receive ? "VipPostRecv first" : "VipPostSend first; each descriptor is handed back once";
    keep(failure);
}

VIP_RETURN fail_timeout(const char* name, Vi& vi, const WorkQueue& q) {
    QueueSide& side = vi.side_of(q);
    if (side.told_timeout_at == q.completed + 1) return VIP_TIMEOUT;
    side.told_timeout_at = q.completed + 1;
    Call call(name, vi.public_handle());
    const uint32_t outstanding = q.posted - q.completed;
    const char* state = name_of_state(vi.core.state.load(std::memory_order_relaxed));
    refuse(VIP_TIMEOUT,
           q.is_receive ? "look at the sender with vipstat: is it connected to this VI, and has it posted a send?"
                        : "the peer must take messages: at Reliable Reception it has to post receives and poll or wait",
           "%u descriptors of the %s wait, the oldest is number %u; the VI is %s", outstanding, name_of_queue(q),
           q.completed, state);
    return call.end(VIP_TIMEOUT);
}

void note_cq_timeout(Cq& cq, VIP_CQ_HANDLE handle) {
    const BiasedLockGuard lock(cq.poll.lock);
    const uint32_t next = cq.target.ring.taken() + 1;
    if (!cq.is(handle) || cq.told_timeout_at == next) return;
    cq.told_timeout_at = next;
    Call call("VipCQWait", handle);
    const uint32_t queues = cq.queues.load(std::memory_order_relaxed);
    refuse(VIP_TIMEOUT,
           queues == 0 ? "give the completion queue to VipCreateVi, for the queues whose completions it shall tell"
                       : "look at the VIs with vipstat: are they connected, and has the peer posted what they wait "
                         "for?",
           "no descriptor has completed on the %u work queues that are attached to the completion queue", queues);
    call.end(VIP_TIMEOUT);
}

VIP_RETURN last_error(const void* object, char* text, VIP_ULONG bytes) {
    if (handle_table.was_wiped() && stats::failures_are_in_segment()) stats::reset_failures();
    stats::FailureRecord record;
    if (text == nullptr || bytes == 0) return VIP_INVALID_PARAMETER;
    text[0] = 0;
    if (!stats::last_failure(object, &record)) return VIP_NOT_DONE;
    stats::write_failure(record, text, bytes);
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
