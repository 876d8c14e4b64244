// SPDX-License-Identifier: BSD-2-Clause
// The VIs of one plan at one end, with their descriptors and memory, and the steps from which the measuring
// loops are made: post, receive, reap. Over vipl.h alone; one thread.
#pragma once

#include <vipl.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock/clock.hpp"
#include "utils/common/error.hpp"
#include "utils/common/limits.hpp"
#include "utils/common/nic.hpp"
#include "utils/vipperf/plan.hpp"

namespace viaduct::vipperf {

// Short messages between the ends of a stream, recognised by their immediate data.
enum class Note : uint32_t { none = 0, credit = 1, fin = 2, done = 3, go = 4 };

// A loop whose other end hangs ends with an error instead of waiting for ever.
class StallCheck {
public:
    void look() {
        if (++looks_ % kLooksPerTime == 0) [[unlikely]]
            look_at_clock();
    }

private:
    static constexpr uint64_t kLooksPerTime = 1 << 16;
    void look_at_clock();
    uint64_t looks_ = 0;
    int64_t began_ = 0;
};

// Nothing happens for so long: the other end hangs.
inline VIP_ULONG stall_ms() { return tools::limit_ms(TimeLimit::vipperf_stall); }

struct Channel {
    VIP_VI_HANDLE vi = nullptr;
    VIP_DESCRIPTOR* receives = nullptr;
    VIP_DESCRIPTOR* sends = nullptr;
    VIP_DESCRIPTOR* notes = nullptr;
    uint32_t next_send = 0;
    uint32_t next_note = 0;
    uint32_t outstanding = 0;  // posted on the send queue and not reaped
    uint32_t credits = 0;      // messages the other end has room for
    uint32_t ungranted = 0;    // messages taken since credit was last given
    uint64_t sent = 0;         // number of the next message, for its pattern
    uint64_t received = 0;
};

struct Arrival {
    VIP_DESCRIPTOR* descriptor;
    Channel* channel;
};

class Bundle {
public:
    static constexpr uint32_t kSends = 128;  // on a send queue at once

    // Opens a NIC context of its own and posts all receives.
    Bundle(const std::string& device, const Plan& plan);
    ~Bundle();
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;

    // VI number i of the client meets number i of the server. The client names where the server is.
    void accept_all(const std::string& discriminator);
    void request_all(const std::string& host, const std::string& discriminator);

    const Plan& plan() const { return plan_; }
    std::vector<Channel>& channels() { return channels_; }
    Channel& next_of(uint64_t number) {
        return channels_.size() == 1 ? channels_[0] : channels_[number % channels_.size()];
    }
    Window window() const;  // of this end
    void set_remote(const Window& theirs) { remote_ = theirs; }
    std::byte* incoming() { return incoming_; }
    std::byte* outgoing() { return outgoing_; }

    // Every descriptor of the send queues gets this operation and size.
    void prepare(uint64_t bytes);

    // Posts the next message (or write or read) on a channel; there must be room (make_room).
    void post(Channel& c) {
        VIP_DESCRIPTOR* d = &c.sends[c.next_send++ % kSends];
        d->CS.Status = 0;
        if (plan_.check != 0) [[unlikely]]
            choose_bytes(c, d);
        tools::check(VipPostSend(c.vi, d, handle_), "VipPostSend");
        ++c.outstanding;
    }
    void send_note(Channel&, Note, uint32_t value = 0);
    static Note note_of(const VIP_DESCRIPTOR* d) {
        if ((d->CS.Status & VIP_STATUS_IMMEDIATE) == 0) return Note::none;
        return static_cast<Note>(d->CS.ImmediateData >> kNoteShift);
    }
    static uint32_t value_of(const VIP_DESCRIPTOR* d) {
        return d->CS.ImmediateData & ((1u << kNoteShift) - 1);
    }

    void repost(const Arrival& a) {
        a.descriptor->CS.Status = 0;
        tools::check(VipPostRecv(a.channel->vi, a.descriptor, handle_), "VipPostRecv");
    }

    // The next arrival on `c`, or with a completion queue on any channel; waits as the plan says.
    template <Completion how>
    Arrival receive(Channel& c);
    // The same without waiting: descriptor nullptr when there is none.
    template <Completion how>
    Arrival try_receive(Channel& c);

    // Takes completed sends until at most `left` are outstanding on the channel.
    template <Completion how>
    void reap(Channel& c, uint32_t left);
    void make_room(Channel& c) {
        if (c.outstanding >= kSends - 1) [[unlikely]]
            reap_more(c);
    }
    void reap_all();

    // With --check: what arrived is what was sent as the channel's next message.
    void verify(Channel&, const std::byte* data, uint64_t bytes);
    const std::byte* expected(uint64_t number) const { return pattern_.data() + offset_of(number); }
    static uint64_t offset_of(uint64_t number) { return number % kOffsets * 8; }
    // Messages of the next stream that came while this end was still in the one before.
    void keep_early(uint64_t count) { early_ = count; }
    uint64_t take_early() { return std::exchange(early_, 0); }
    // A flag that differs from the one before and is never 0, for RDMA writes.
    uint8_t next_flag() { return static_cast<uint8_t>(++flags_ % 251 + 1); }

    // What a descriptor that completed in error says.
    [[noreturn]] void fail_with(VIP_RETURN, const VIP_DESCRIPTOR*, const char* where) const;

private:
    static constexpr uint32_t kNoteShift = 24;
    static constexpr uint64_t kOffsets = 61;  // prime to every queue depth
    static constexpr uint64_t kPatternRoom = kOffsets * 8;

    void lay_out();
    void make_vis();
    void choose_bytes(Channel&, VIP_DESCRIPTOR*);
    void reap_more(Channel&);
    Channel& channel_of(VIP_VI_HANDLE vi, Channel& likely) {
        return channels_.size() == 1 ? likely : *static_cast<Channel*>(VipGetUserData(vi));
    }
    // Completions of sends go through the queue the plan names when sends are what is measured.
    bool receives_by_plan() const { return plan_.operation == Operation::send; }

    Plan plan_;
    tools::Nic nic_;
    std::unique_ptr<tools::Memory> memory_;
    VIP_MEM_HANDLE handle_ = 0;
    VIP_CQ_HANDLE cq_ = nullptr;
    std::vector<Channel> channels_;
    std::byte* outgoing_ = nullptr;
    std::byte* incoming_ = nullptr;
    uint64_t slot_bytes_ = 0;
    uint64_t bytes_ = 0;  // of the messages prepared
    Window remote_;
    std::vector<std::byte> pattern_;
    uint32_t flags_ = 0;
    uint64_t early_ = 0;
};

template <Completion how>
Arrival Bundle::try_receive(Channel& c) {
    VIP_DESCRIPTOR* d = nullptr;
    Channel* channel = &c;
    VIP_RETURN result;
    if constexpr (how == Completion::cq || how == Completion::cq_wait) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        result = VipCQDone(cq_, &vi, &is_receive);
        if (result == VIP_NOT_DONE) return {nullptr, channel};
        tools::check(result, "VipCQDone");
        channel = &channel_of(vi, c);
        result = VipRecvDone(vi, &d);
    } else {
        result = VipRecvDone(c.vi, &d);
    }
    if (result == VIP_NOT_DONE) return {nullptr, channel};
    if (result != VIP_SUCCESS) [[unlikely]]
        fail_with(result, d, "receiving");
    return {d, channel};
}

template <Completion how>
Arrival Bundle::receive(Channel& c) {
    if constexpr (how == Completion::queue || how == Completion::cq) {
        StallCheck stall_check;
        for (;;) {
            const Arrival arrival = try_receive<how>(c);
            if (arrival.descriptor != nullptr) return arrival;
            stall_check.look();
        }
    } else if constexpr (how == Completion::wait) {
        VIP_DESCRIPTOR* d = nullptr;
        const VIP_RETURN result = VipRecvWait(c.vi, stall_ms(), &d);
        if (result != VIP_SUCCESS) [[unlikely]]
            fail_with(result, d, "VipRecvWait");
        return {d, &c};
    } else {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        tools::check(VipCQWait(cq_, stall_ms(), &vi, &is_receive), "VipCQWait");
        VIP_DESCRIPTOR* d = nullptr;
        VIP_RETURN result;
        while ((result = VipRecvDone(vi, &d)) == VIP_NOT_DONE) {
        }
        if (result != VIP_SUCCESS) [[unlikely]]
            fail_with(result, d, "receiving");
        return {d, &channel_of(vi, c)};
    }
}

template <Completion how>
void Bundle::reap(Channel& c, uint32_t left) {
    StallCheck stall_check;
    while (c.outstanding > left) {
        VIP_DESCRIPTOR* d = nullptr;
        VIP_VI_HANDLE vi = c.vi;
        VIP_RETURN result;
        if constexpr (how == Completion::cq || how == Completion::cq_wait) {
            VIP_BOOLEAN is_receive = VIP_FALSE;
            result =
                how == Completion::cq ? VipCQDone(cq_, &vi, &is_receive) : VipCQWait(cq_, stall_ms(), &vi, &is_receive);
            if (result == VIP_SUCCESS) {
                while ((result = VipSendDone(vi, &d)) == VIP_NOT_DONE) {
                }
            }
        } else {
            result = how == Completion::wait ? VipSendWait(vi, stall_ms(), &d) : VipSendDone(vi, &d);
        }
        if (result == VIP_NOT_DONE) {
            stall_check.look();
            continue;
        }
        if (result != VIP_SUCCESS) [[unlikely]]
            fail_with(result, d, "sending");
        --channel_of(vi, c).outstanding;
    }
}

}  // namespace viaduct::vipperf
