// SPDX-License-Identifier: BSD-2-Clause
// Why a call fails: what every exported call says before it returns an error. The record goes to the ring of
// core/stats/failures.hpp. Failing paths only, but for the two pointers that a call outside the hot path keeps.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <initializer_list>

#include "core/handles/handle_table.hpp"
#include "core/vi/vi_core.hpp"

namespace viaduct::vipl {

struct Cq;
struct Vi;

// One exported call that is under way on this thread. Its end leaves a record when the answer is an error.
class Call {
public:
    Call(const char* name, const void* object);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    VIP_RETURN end(VIP_RETURN answer);
    // The other end's address, when it is not that of the object.
    void set_peer(const char* text);

    const char* const name;
    const void* object;
    Call* const outer;
    bool told = false;  // text and cure are set
    char text[320];
    char cure[224];
    char peer[64];
};

// Says why the call that is under way on this thread fails; the first reason of a call stands. Returns `answer`.
[[gnu::cold, gnu::format(printf, 3, 4)]] VIP_RETURN refuse(VIP_RETURN answer, const char* cure, const char* format,
                                                           ...);
// The same with the words of a provider: cut to fit, without what is not printable ASCII.
[[gnu::cold]] void refuse_as_said(const char* reason, const char* cure);
// Puts words and a colon before the reason that the call has.
[[gnu::cold, gnu::format(printf, 1, 2)]] void put_before_reason(const char* format, ...);
// Something to know about a call that does not fail.
[[gnu::cold, gnu::format(printf, 4, 5)]] void note(const char* call, const void* object, const char* cure,
                                                   const char* format, ...);
// A reason is there already.
bool is_refused();

// A handle that is not live, or is of another kind. `argument` is its name in the call.
[[gnu::cold]] VIP_RETURN refuse_handle(const char* argument, const void* handle, HandleKind wanted);
[[gnu::cold]] inline VIP_RETURN refuse_vi(const void* handle) {
    return refuse_handle("ViHandle", handle, HandleKind::vi);
}

[[gnu::cold]] inline VIP_RETURN refuse_cq(const void* handle) {
    return refuse_handle("CQHandle", handle, HandleKind::cq);
}

VIP_RETURN refuse_ptag(const void* handle, const char* nic);
// What the agent grants one user is used up.
VIP_RETURN refuse_quota(const char* what, const char* setting);

struct Argument {
    const void* value;
    const char* name;
};
// VIP_SUCCESS, or INVALID_PARAMETER when one of them is NULL.
VIP_RETURN need(std::initializer_list<Argument> pointers);

// For calls on the hot path, which keep no Call: makes the whole record. Each returns its answer.
[[gnu::cold, gnu::noinline]] VIP_RETURN fail_handle(const char* call, const char* argument, const void* handle,
                                                    HandleKind wanted);
[[gnu::cold, gnu::noinline]] VIP_RETURN fail_null(const char* call, const void* object, const char* argument);
// A call waits on a queue without descriptors, where nothing can complete: reported once for each queue. Its lock is
// held. A poll of an empty queue is no failure.
[[gnu::cold, gnu::noinline]] void note_empty_queue(Vi&, const WorkQueue&);

// A wait whose time was over: reported once for each descriptor. The lock of the queue is held.
[[gnu::cold, gnu::noinline]] VIP_RETURN fail_timeout(const char* call, Vi&, const WorkQueue&);
// The same for VipCQWait: reported once for each entry that is waited for.
[[gnu::cold, gnu::noinline]] void note_cq_timeout(Cq&, VIP_CQ_HANDLE);

// ViEvents::failed.
void on_descriptor_failed(WorkQueue&, const VIP_DESCRIPTOR*, uint32_t status);
// A connection has broken, or an asynchronous error of it is told. Both queue locks are held, or no other thread
// changes them.
void note_broken(Vi&, const BreakReason&, bool stays);

// In words, without the cure; and the cure. At most `bytes` with the zero behind it.
void write_cause(const Cause&, char* text, size_t bytes);
const char* cure_of(const Cause&);

// For VipxLastError.
VIP_RETURN last_error(const void* object, char* text, VIP_ULONG bytes);

}  // namespace viaduct::vipl
