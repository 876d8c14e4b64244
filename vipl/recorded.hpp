// SPDX-License-Identifier: BSD-2-Clause
// Calls as the record of the process shows them (core/trace); what each event holds is in core/trace/events.hpp. Calls
// that are not on the hot path ask each time whether there is a record. The hot ones do not: while the process is
// recorded, no queue is open to them (WorkQueue::open_to), and their general forms ask.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/trace/ring.hpp"
#include "viaduct/types.hpp"
#include "vipl/library.hpp"

namespace viaduct::vipl {

using trace::Phase;
using trace::What;

// In a child that no handler has told of the fork, the record is its parent's, and its memory is not there.
inline bool is_recorded() { return trace::on() && !handle_table.was_wiped(); }

inline uint64_t moved(const VIP_DESCRIPTOR* d) {
    return d != nullptr ? d->CS.Length | uint64_t{d->CS.Status} << 32 : 0;
}

inline uint64_t posted(const VIP_DESCRIPTOR* d) { return d->CS.Length | uint64_t{d->CS.Control} << 32; }

// FNV, of the discriminator alone: programs leave the host of their own address as it is.
inline uint32_t mark_of(const unsigned char* discriminator, size_t bytes) {
    uint32_t mark = 2166136261u;
    for (size_t i = 0; i < bytes; ++i) mark = (mark ^ discriminator[i]) * 16777619u;
    return mark;
}

// An address of the program: any bytes, any alignment (spec/compat A1, A2). 0: none that a call takes.
inline uint32_t mark_of(const VIP_NET_ADDRESS* a) {
    if (a == nullptr) return 0;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(a);
    uint16_t lengths[2];  // of host and discriminator
    std::memcpy(lengths, bytes, sizeof lengths);
    if (lengths[0] != kNicAddressBytes || lengths[1] > kMaxDiscriminator) return 0;
    return mark_of(bytes + offsetof(VIP_NET_ADDRESS, HostAddress) + kNicAddressBytes, lengths[1]);
}

inline uint32_t mark_of(const EndAddress& a) { return mark_of(a.discriminator, a.discriminator_len); }

template <class Address>
uint64_t marks_of(const Address& local, const Address& remote) {
    return uint64_t{mark_of(local)} << 32 | mark_of(remote);
}

// Of what a call is given and has not checked yet: read only where the call is recorded.
inline uint64_t given_marks(const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote) {
    return is_recorded() ? marks_of(local, remote) : 0;
}

// An event when the call begins and one when it has returned; `outcome(result)` gives object and value of the second. A
// call that had begun before the record has the second alone: it may have made a connection.
template <class Body, class Outcome>
VIP_RETURN recorded(What what, const void* object, uint64_t value, Body&& body, Outcome&& outcome) {
    if (is_recorded()) [[unlikely]]
        trace::add(what, Phase::begin, object, value);
    const VIP_RETURN result = body();
    if (!is_recorded()) [[likely]]
        return result;
    const std::pair<const void*, uint64_t> told = outcome(result);
    trace::add(what, Phase::end, told.first, told.second, static_cast<uint32_t>(result));
    return result;
}

template <class Body>
VIP_RETURN recorded(What what, const void* object, uint64_t value, Body&& body) {
    return recorded(what, object, value, body, [&](VIP_RETURN) { return std::pair(object, value); });
}

// What a call has made, as object of its second event.
template <class Handle>
std::pair<const void*, uint64_t> handle_if(bool made, Handle* handle, uint64_t value = 0) {
    return made ? std::pair<const void*, uint64_t>(*handle, value) : std::pair<const void*, uint64_t>(nullptr, 0);
}

// While one is alive, completions that this thread fetches are no events of their own: they are a part of the call.
class PartOfCall {
public:
    PartOfCall() : before_(std::exchange(inside_, true)) {}
    ~PartOfCall() { inside_ = before_; }
    PartOfCall(const PartOfCall&) = delete;
    PartOfCall& operator=(const PartOfCall&) = delete;
    static bool inside() { return inside_; }

private:
    static inline thread_local bool inside_ = false;
    const bool before_;
};

// A call that waits for a descriptor of that VI.
template <class Body>
VIP_RETURN recorded_wait(What what, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* out, Body&& body) {
    if (!is_recorded()) [[likely]]
        return body();
    return recorded(
        what, vi, 0,
        [&] {
            const PartOfCall whole;
            return body();
        },
        [&](VIP_RETURN r) {
            const bool fetched = r == VIP_SUCCESS || r == VIP_DESCRIPTOR_ERROR;
            return std::pair<const void*, uint64_t>(vi, fetched ? moved(*out) : 0);
        });
}

// A descriptor that a call which does not wait has fetched.
inline void note_fetched(What what, VIP_VI_HANDLE vi, VIP_RETURN result, const VIP_DESCRIPTOR* d) {
    if (result == VIP_NOT_DONE || PartOfCall::inside()) return;
    trace::add(what, Phase::instant, vi, moved(d), static_cast<uint32_t>(result));
}

// Recording by order of the agent (kTraceWanted): into that memory, until the order is over, or until the agent over
// whose connection `epoch` it has come is there no more. `number` is the order's. Event thread only; no lock held.
void begin_recording(Library& library, int memory, uint64_t epoch, uint64_t number);
void look_at_recording(Library& library);
// As the agent's notices come; any thread, no memory. Of an order; and of the end (kTraceOver) of all that have come,
// which the event thread sees when it next looks.
uint64_t number_recording();
void note_recording_over();
// In a forked child.
void clear_recording();

}  // namespace viaduct::vipl
