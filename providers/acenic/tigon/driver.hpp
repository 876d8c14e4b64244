// SPDX-License-Identifier: BSD-2-Clause
// The host's side of the Tigon-II's interface: makes the rings in a segment of its own, keeps them filled,
// sends and takes Ethernet frames, gives commands, takes events. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/acenic/tigon/host_memory.hpp"
#include "providers/acenic/tigon/interface.hpp"

namespace viaduct::acenic::tigon {

class Driver {
public:
    // For frames of at most `largest` bytes, Ethernet header included. False: no memory.
    bool start(uint32_t largest);
    const Segment& segment() const { return segment_; }
    uint32_t largest() const { return largest_; }

    // ---- sending. Room for an Ethernet frame, or null while the ring is full; at most one at a time.
    std::byte* begin_send();
    void end_send(uint32_t bytes);  // 0: not sent after all
    // Writes the mailboxes of what has been begun. True: the NIC sleeps and must be rung, for what has been
    // sent, or for receive buffers that have been given back since the last call.
    bool ring_mailboxes();
    // The frame that is to leave next has been waiting for long, by what was seen at the call before:
    // the NIC's processor is not running. One that has been waiting for very long does not make a caller
    // wait any more.
    bool stands_still(int64_t now);

    // ---- receiving. Takes up to `most` frames; each buffer is the NIC's again after the call.
    template <class Take>
    uint32_t receive(uint32_t most, Take take) {
        uint32_t taken = 0;
        std::span<const std::byte> frame;
        while (taken < most && next_frame(&frame)) {
            ++taken;
            take(frame);
            give_back();
        }
        if (taken != 0) finish_receive();
        return taken;
    }
    // The next event of the NIC; false: none.
    bool next_event(Packed* out);

    // ---- filters and commands: given when there is room, in order, by ring_mailboxes.
    void command(CommandId, uint32_t code, uint32_t index);
    // The place of a new filter; kFilters: all are in use.
    uint32_t add_filter(const FilterEntry&);
    void delete_filter(uint32_t index, bool release_matches);
    bool set_faults(const FaultEntry&);

    // ---- sleeping: asks for an interrupt at the next event. False: there is one already.
    bool wait_for_interrupt();

    uint32_t statistic(Statistic s) const { return info_->statistics[s]; }
    uint64_t send_full() const { return send_full_; }

private:
    struct ReceiveRing {
        std::byte* entries = nullptr;
        uint32_t size = 0, producer = 0, mailbox = 0;
        bool dirty = false;
    };
    Word* word(size_t offset) { return reinterpret_cast<Word*>(segment_.data() + offset); }
    bool next_frame(std::span<const std::byte>*);
    void give_back();
    void finish_receive();
    void post(ReceiveRing&, uint32_t index);
    void reclaim();
    void flush_commands();

    Segment segment_;
    Layout layout_;
    uint32_t largest_ = 0;
    Window* window_ = nullptr;
    GeneralInformation* info_ = nullptr;

    uint32_t send_producer_ = 0, send_consumer_ = 0, send_shown_ = 0;
    uint32_t waiting_ = 0;                // the place in the ring of the frame that waited
    int64_t waits_since_ = INT64_MAX;     // at the latest; INT64_MAX: none did
    std::vector<uint16_t> free_buffers_;  // of sends; the last used first, while it is in the caches
    uint16_t buffer_of_[kSendRing] = {};  // by place in the send ring
    uint32_t return_consumer_ = 0, event_consumer_ = 0;
    ReceiveDescriptor current_;
    ReceiveRing standard_, jumbo_;
    bool gave_back_ = false;
    uint32_t command_producer_ = 0, command_shown_ = 0;
    std::deque<uint32_t> commands_;  // that found no room
    std::vector<uint16_t> free_filters_;
    uint64_t send_full_ = 0;
};

}  // namespace viaduct::acenic::tigon
