// SPDX-License-Identifier: BSD-2-Clause
// The NIC's side of the host interface, for one host. The host is another program and may write
// anything anywhere in the segment at any time: every index is taken modulo its ring, every descriptor is
// copied out once and checked by the copy, every address is checked against the segment, and nothing the NIC
// depends on lies in the segment. The worst a host can do is to lose its own frames. One thread; nothing
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "providers/acenic/tigon/host_memory.hpp"
#include "providers/acenic/tigon/interface.hpp"

namespace viaduct::acenic::tigon {

// What became of a frame for the host.
enum class Delivery : uint8_t {
    done,
    no_descriptor,  // none is posted, or a bad one was
    no_return,      // the receive-return ring is full
    too_long,       // for every ring this host has
};

class Firmware {
public:
    // Reads the general information block whose address the window holds. False: *why says what is wrong with
    // it, and nothing may be called. The segment outlives this object and cannot shrink.
    bool start(std::byte* segment, size_t bytes, const char** why);

    // ---- commands. False: there is none.
    bool next_command(Packed* out);
    // A copy of an entry of the filter table.
    FilterEntry filter(uint32_t index) const;
    FaultEntry faults(uint32_t index) const;
    // Tells the host; lost and counted when its ring is full.
    void post_event(EventId, uint32_t code, uint32_t index);

    // ---- sending: the oldest frame of the send ring, or false. It stays until send_done(). The bytes are
    // the host's: copy them, then judge the copy. Bad descriptors are skipped and counted.
    bool next_send(std::span<const std::byte>* frame);
    void send_done(bool sent);

    // Whether deliver() would find a descriptor for a frame of that size now, or refuse it for good.
    bool has_room(uint32_t bytes) const;
    // ---- receiving: a frame made of two pieces, into the next buffer of the right ring.
    Delivery deliver(std::span<const std::byte> head, std::span<const std::byte> body);
    // A frame of that size is lost without a descriptor, without having been shown to deliver().
    void count_dropped(uint32_t bytes);

    // Shows the host what has been done since the last call. True: it must be interrupted (and counts as
    // interrupted until it enables interrupts again).
    bool publish();

    // ---- sleeping: asks the host to ring for its next mailbox write, or takes that back; for those of the
    // receive rings only when frames wait for descriptors. After going to sleep has_work() must be called once
    // more, and has_room() for such a frame.
    void set_asleep(bool asleep, bool frames_wait);
    bool has_work() const;

    void update_statistics();
    void clear_statistics();
    uint64_t frames_in() const { return in_frames_; }
    uint64_t frames_out() const { return out_frames_; }
    uint32_t dropped() const;

private:
    struct ReceiveRing {
        const std::byte* entries = nullptr;  // null: the host has none
        uint32_t size = 0;
        uint32_t consumer = 0;
        uint32_t mailbox = 0;
        Statistic exhausted{};
    };

    std::byte* at(const Address&, size_t bytes, size_t alignment) const;
    Word* word_at(const Address&) const;
    bool read_ring(const RingControlBlock&, uint32_t entries, size_t entry_bytes, std::byte** out) const;
    bool take_buffer(ReceiveRing&, uint32_t bytes, ReceiveDescriptor*, std::byte** room);
    void count(Statistic s, uint32_t n = 1) { statistics_[s] += n; }

    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    Window* window_ = nullptr;
    uint32_t* host_statistics_ = nullptr;
    Word *event_producer_word_ = nullptr, *return_producer_word_ = nullptr, *send_consumer_word_ = nullptr;

    std::byte* events_ = nullptr;
    const std::byte* sends_ = nullptr;
    std::byte* returns_ = nullptr;
    uint32_t send_size_ = 0, return_size_ = 0, standard_limit_ = 0;
    ReceiveRing standard_, jumbo_;

    uint32_t command_consumer_ = 0, event_producer_ = 0, send_consumer_ = 0, return_producer_ = 0;
    uint32_t shown_event_ = 0, shown_return_ = 0, shown_send_ = 0;
    uint64_t in_octets_ = 0, in_frames_ = 0, out_octets_ = 0, out_frames_ = 0;
    uint32_t sending_bytes_ = 0;
    uint32_t statistics_[kStatisticsWords] = {};
};

}  // namespace viaduct::acenic::tigon
