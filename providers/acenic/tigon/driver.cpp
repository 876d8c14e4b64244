// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/tigon/driver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock/limits.hpp"

namespace viaduct::acenic::tigon {

namespace {

// A NIC takes a frame in microseconds; one whose process has to wait for a processor may need some
// milliseconds.
constexpr int64_t kStalled = 50'000'000;

Address address_of(size_t offset) {
    return {static_cast<uint32_t>(uint64_t{offset} >> 32), static_cast<uint32_t>(offset)};
}

RingControlBlock ring(size_t offset, uint32_t max_len, uint16_t flags = 0) {
    RingControlBlock r;
    r.host = address_of(offset);
    r.max_len = static_cast<uint16_t>(max_len);
    r.flags = flags;
    return r;
}

}  // namespace

// ---- bring-up: block and rings first, then the address of the block

bool Driver::start(uint32_t largest) {
    largest_ = largest;
    layout_ = layout_for(largest);
    segment_ = Segment::create("viaduct-tigon", layout_.bytes);
    if (!segment_.valid()) return false;
    std::byte* const base = segment_.data();
    window_ = reinterpret_cast<Window*>(base);
    info_ = reinterpret_cast<GeneralInformation*>(base + layout_.info);
    info_->rcb[kEventRcb] = ring(layout_.event, kEventRing);
    info_->rcb[kCommandRcb] = ring(offsetof(Window, command), kCommandRing);
    info_->rcb[kSendRcb] = ring(layout_.send, kSendRing, kTxHostRing);
    info_->rcb[kStandardRcb] = ring(layout_.standard, kStandardFrame);
    info_->rcb[kJumboRcb] = ring(layout_.jumbo_ring, largest, layout_.jumbo ? 0 : kRingDisabled);
    info_->rcb[kMiniRcb] = ring(0, 0, kRingDisabled);
    info_->rcb[kReturnRcb] = ring(layout_.receive_return, kReturnRing);
    info_->event_producer = address_of(layout_.event_producer);
    info_->return_producer = address_of(layout_.return_producer);
    info_->send_consumer = address_of(layout_.send_consumer);
    info_->second_statistics = address_of(layout_.second_statistics);

    standard_ = {base + layout_.standard, kStandardRing, 0, kStandardMailbox, false};
    jumbo_ = {base + layout_.jumbo_ring, kJumboRing, 0, kJumboMailbox, false};
    for (uint32_t i = 0; i + 1 < kStandardRing; ++i) post(standard_, i);
    if (layout_.jumbo)
        for (uint32_t i = 0; i + 1 < kJumboRing; ++i) post(jumbo_, i);
    for (uint32_t i = kSendRing; i-- != 0;) free_buffers_.push_back(static_cast<uint16_t>(i));
    for (uint32_t i = kFilters; i-- != 0;) free_filters_.push_back(static_cast<uint16_t>(i));
    finish_receive();
    window_->if_mtu.store(largest + 4, std::memory_order_relaxed);
    window_->mailbox[kInterruptMailbox].low.store(1, std::memory_order_relaxed);
    const Address where = address_of(layout_.info);
    window_->info_high.store(where.high, std::memory_order_release);
    window_->info_low.store(where.low, std::memory_order_release);
    command(kHostState, kUp, 0);
    return true;
}

// ---- sending

// Buffers of frames that have left.
void Driver::reclaim() {
    const uint32_t consumer = word(layout_.send_consumer)->load(std::memory_order_acquire) % kSendRing;
    while (send_consumer_ != consumer && send_consumer_ != send_producer_) {
        free_buffers_.push_back(buffer_of_[send_consumer_]);
        send_consumer_ = (send_consumer_ + 1) % kSendRing;
    }
}

std::byte* Driver::begin_send() {
    if ((send_producer_ - send_consumer_) % kSendRing >= kSendRing / 8) reclaim();
    if ((send_producer_ + 1) % kSendRing == send_consumer_) {
        ++send_full_;
        return nullptr;
    }
    return segment_.data() + layout_.send_buffers + size_t{free_buffers_.back()} * layout_.send_room;
}

void Driver::end_send(uint32_t bytes) {
    if (bytes == 0) return;
    const uint16_t buffer = free_buffers_.back();
    free_buffers_.pop_back();
    buffer_of_[send_producer_] = buffer;
    SendDescriptor d;
    d.host = address_of(layout_.send_buffers + size_t{buffer} * layout_.send_room);
    d.length = static_cast<uint16_t>(bytes);
    d.flags = kFlagEnd;
    std::memcpy(segment_.data() + layout_.send + send_producer_ * sizeof d, &d, sizeof d);
    send_producer_ = (send_producer_ + 1) % kSendRing;
}

bool Driver::ring_mailboxes() {
    flush_commands();
    const bool gave_back = std::exchange(gave_back_, false);
    const bool news = send_shown_ != send_producer_ || command_shown_ != command_producer_;
    if (!news && !gave_back) return false;
    send_shown_ = send_producer_;
    command_shown_ = command_producer_;
    window_->mailbox[kCommandMailbox].low.store(command_producer_, std::memory_order_release);
    window_->mailbox[kSendMailbox].low.store(send_producer_, std::memory_order_release);
    // The NIC says that it sleeps, then looks at the mailboxes once more.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const auto halted = [](const Word& cpu) { return (cpu.load(std::memory_order_relaxed) & kCpuHalt) != 0; };
    return (news && halted(window_->cpu_control)) || (gave_back && halted(window_->cpu_b_control));
}

bool Driver::stands_still(int64_t now) {
    const uint32_t consumer = word(layout_.send_consumer)->load(std::memory_order_relaxed) % kSendRing;
    if (consumer == send_shown_) {
        waits_since_ = INT64_MAX;
        return false;
    }
    if (waits_since_ == INT64_MAX || consumer != waiting_) {
        waiting_ = consumer;
        waits_since_ = now;
        return false;
    }
    return now - waits_since_ >= kStalled && now - waits_since_ < limit_ns(TimeLimit::acenicd_hung);
}

// ---- receiving

void Driver::post(ReceiveRing& r, uint32_t index) {
    const bool jumbo = &r == &jumbo_;
    ReceiveDescriptor d;
    const size_t room = jumbo ? layout_.send_room : kStandardRoom;
    d.host = address_of((jumbo ? layout_.jumbo_buffers : layout_.standard_buffers) + index * room);
    d.index = static_cast<uint16_t>(index);
    d.length = static_cast<uint16_t>(room);
    d.flags = jumbo ? kFlagJumbo : 0;
    std::memcpy(r.entries + r.producer * sizeof d, &d, sizeof d);
    r.producer = (r.producer + 1) % r.size;
    r.dirty = true;
}

bool Driver::next_frame(std::span<const std::byte>* out) {
    const uint32_t producer = word(layout_.return_producer)->load(std::memory_order_acquire) % kReturnRing;
    if (producer == return_consumer_) return false;
    std::memcpy(&current_, segment_.data() + layout_.receive_return + return_consumer_ * sizeof current_,
                sizeof current_);
    // The NIC is trusted with the frame, but not with our memory.
    const bool jumbo = (current_.flags & kFlagJumbo) != 0;
    const size_t room = jumbo ? layout_.send_room : kStandardRoom;
    current_.index = static_cast<uint16_t>(current_.index % (jumbo ? kJumboRing : kStandardRing));
    if (jumbo && !layout_.jumbo) current_.length = 0;
    const std::byte* buffer = segment_.data() + (jumbo ? layout_.jumbo_buffers : layout_.standard_buffers) +
                              size_t{current_.index} * room;
    *out = {buffer, std::min<size_t>(current_.length, room)};
    return true;
}

void Driver::give_back() {
    const bool jumbo = (current_.flags & kFlagJumbo) != 0;
    return_consumer_ = (return_consumer_ + 1) % kReturnRing;
    if (!jumbo || layout_.jumbo) post(jumbo ? jumbo_ : standard_, current_.index);
}

void Driver::finish_receive() {
    window_->return_consumer.store(return_consumer_, std::memory_order_release);
    for (ReceiveRing* r : {&standard_, &jumbo_}) {
        if (!r->dirty) continue;
        r->dirty = false;
        gave_back_ = true;
        window_->mailbox[r->mailbox].low.store(r->producer, std::memory_order_release);
    }
}

bool Driver::next_event(Packed* out) {
    const uint32_t producer = word(layout_.event_producer)->load(std::memory_order_acquire) % kEventRing;
    if (producer == event_consumer_) return false;
    Event e;
    std::memcpy(&e, segment_.data() + layout_.event + event_consumer_ * sizeof e, sizeof e);
    *out = Packed::of(e.word);
    event_consumer_ = (event_consumer_ + 1) % kEventRing;
    window_->event_consumer.store(event_consumer_, std::memory_order_release);
    return true;
}

// ---- commands

void Driver::command(CommandId id, uint32_t code, uint32_t index) {
    commands_.push_back(Packed{id, code, index}.word());
    flush_commands();
}

void Driver::flush_commands() {
    while (!commands_.empty()) {
        const uint32_t next = (command_producer_ + 1) % kCommandRing;
        if (next == window_->command_consumer.load(std::memory_order_acquire) % kCommandRing) return;
        window_->command[command_producer_].store(commands_.front(), std::memory_order_relaxed);
        command_producer_ = next;
        commands_.pop_front();
    }
}

uint32_t Driver::add_filter(const FilterEntry& entry) {
    if (free_filters_.empty()) return kFilters;
    const uint32_t index = free_filters_.back();
    free_filters_.pop_back();
    std::memcpy(segment_.data() + kFilterTable + index * sizeof entry, &entry, sizeof entry);
    command(kAddFilter, 0, index);
    return index;
}

// The place may be written again at once: the commands are in order, but the NIC reads the entry only when it
// comes to them. So it goes to the far end of the list.
void Driver::delete_filter(uint32_t index, bool release_matches) {
    command(kDeleteFilter, release_matches ? 1 : 0, index);
    free_filters_.insert(free_filters_.begin(), static_cast<uint16_t>(index));
}

bool Driver::set_faults(const FaultEntry& entry) {
    if (free_filters_.empty()) return false;
    const uint32_t index = free_filters_.back();
    free_filters_.pop_back();
    std::memcpy(segment_.data() + kFilterTable + index * sizeof entry, &entry, sizeof entry);
    command(kSetFaults, 0, index);
    free_filters_.insert(free_filters_.begin(), static_cast<uint16_t>(index));
    return true;
}

// ---- sleeping

bool Driver::wait_for_interrupt() {
    window_->mailbox[kInterruptMailbox].low.store(0, std::memory_order_relaxed);
    window_->host_control.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return word(layout_.return_producer)->load(std::memory_order_relaxed) % kReturnRing == return_consumer_ &&
           word(layout_.event_producer)->load(std::memory_order_relaxed) % kEventRing == event_consumer_ &&
           commands_.empty();
}

}  // namespace viaduct::acenic::tigon
