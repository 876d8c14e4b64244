// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/tigon/firmware.hpp"

#include <cstring>

namespace viaduct::acenic::tigon {

namespace {

constexpr uint32_t kLeastSend = kEthernetHeader;
constexpr uint32_t kMostSend = 16'384;

// A copy that is read exactly once, whatever the host does meanwhile.
template <class T>
T read_once(const std::byte* from) {
    static_assert(sizeof(T) % 4 == 0 && alignof(T) <= 8);
    uint32_t words[sizeof(T) / 4];
    const auto* source = reinterpret_cast<const uint32_t*>(from);
    for (size_t i = 0; i < sizeof(T) / 4; ++i)
        words[i] = std::atomic_ref(const_cast<uint32_t&>(source[i])).load(std::memory_order_relaxed);
    T copy;
    std::memcpy(static_cast<void*>(&copy), words, sizeof copy);
    return copy;
}

template <class T>
void write_words(std::byte* to, const T& value) {
    static_assert(sizeof(T) % 4 == 0);
    uint32_t words[sizeof(T) / 4];
    std::memcpy(words, &value, sizeof value);
    auto* target = reinterpret_cast<uint32_t*>(to);
    for (size_t i = 0; i < sizeof(T) / 4; ++i)
        std::atomic_ref(target[i]).store(words[i], std::memory_order_relaxed);
}

void write64(uint32_t* words, Statistic first, uint64_t value) {
    words[first] = static_cast<uint32_t>(value >> 32);
    words[first + 1] = static_cast<uint32_t>(value);
}

}  // namespace

// ---- addresses

// The bytes behind a bus address, or null when they are not all in the segment.
std::byte* Firmware::at(const Address& address, size_t bytes, size_t alignment) const {
    const uint64_t offset = uint64_t{address.high} << 32 | address.low;
    if (offset % alignment != 0 || bytes > bytes_ || offset > bytes_ - bytes) return nullptr;
    return base_ + offset;
}

Word* Firmware::word_at(const Address& address) const {
    return reinterpret_cast<Word*>(at(address, sizeof(Word), alignof(Word)));
}

bool Firmware::read_ring(const RingControlBlock& rcb, uint32_t entries, size_t entry_bytes,
                         std::byte** out) const {
    if ((rcb.flags & kRingDisabled) != 0) return false;
    *out = at(rcb.host, entries * entry_bytes, 8);
    return *out != nullptr;
}

// ---- start

bool Firmware::start(std::byte* segment, size_t bytes, const char** why) {
    *this = Firmware();
    const auto fail = [why](const char* text) {
        *why = text;
        return false;
    };
    if (bytes < kFilterTable + sizeof(FilterEntry) * kFilters) return fail("the segment is too small");
    base_ = segment;
    bytes_ = bytes;
    window_ = reinterpret_cast<Window*>(segment);
    const Address where{window_->info_high.load(std::memory_order_acquire),
                        window_->info_low.load(std::memory_order_acquire)};
    const std::byte* block = at(where, sizeof(GeneralInformation), 8);
    if (block == nullptr) return fail("the general information block is not in the segment");
    const auto info = read_once<GeneralInformation>(block);
    host_statistics_ = reinterpret_cast<uint32_t*>(const_cast<std::byte*>(block));
    event_producer_word_ = word_at(info.event_producer);
    return_producer_word_ = word_at(info.return_producer);
    send_consumer_word_ = word_at(info.send_consumer);
    if (event_producer_word_ == nullptr || return_producer_word_ == nullptr || send_consumer_word_ == nullptr)
        return fail("an index word is not in the segment");
    send_size_ = info.rcb[kSendRcb].max_len;
    if (send_size_ != 128 && send_size_ != 256 && send_size_ != 512)
        return fail("the send ring has neither 128, 256 nor 512 entries");
    const uint32_t returns = info.rcb[kReturnRcb].max_len;
    return_size_ = returns == 0 ? kReturnRing : returns;
    if (return_size_ != 1024 && return_size_ != kReturnRing)
        return fail("the receive-return ring has neither 1024 nor 2048 entries");
    std::byte *sends = nullptr, *standard = nullptr, *jumbo = nullptr;
    if (!read_ring(info.rcb[kEventRcb], kEventRing, sizeof(Event), &events_) ||
        !read_ring(info.rcb[kSendRcb], send_size_, sizeof(SendDescriptor), &sends) ||
        !read_ring(info.rcb[kStandardRcb], kStandardRing, sizeof(ReceiveDescriptor), &standard) ||
        !read_ring(info.rcb[kReturnRcb], return_size_, sizeof(ReceiveDescriptor), &returns_))
        return fail("a ring is not in the segment");
    const bool has_jumbo = (info.rcb[kJumboRcb].flags & kRingDisabled) == 0;
    if (has_jumbo && !read_ring(info.rcb[kJumboRcb], kJumboRing, sizeof(ReceiveDescriptor), &jumbo))
        return fail("the jumbo ring is not in the segment");
    sends_ = sends;
    standard_ = {standard, kStandardRing, 0, kStandardMailbox, kStatNoStandard};
    jumbo_ = {jumbo, kJumboRing, 0, kJumboMailbox, kStatNoJumbo};
    standard_limit_ = info.rcb[kStandardRcb].max_len;
    window_->link_state.store(kLinkUp | kLinkEnable | kLinkFull | kLinkGigabit, std::memory_order_relaxed);
    post_event(kFirmwareRunning, 0, 0);
    return true;
}

// ---- commands and events

bool Firmware::next_command(Packed* out) {
    const uint32_t producer =
        window_->mailbox[kCommandMailbox].low.load(std::memory_order_acquire) % kCommandRing;
    if (producer == command_consumer_) return false;
    *out = Packed::of(window_->command[command_consumer_].load(std::memory_order_relaxed));
    command_consumer_ = (command_consumer_ + 1) % kCommandRing;
    window_->command_consumer.store(command_consumer_, std::memory_order_release);
    count(kStatCommands);
    return true;
}

FilterEntry Firmware::filter(uint32_t index) const {
    return read_once<FilterEntry>(base_ + kFilterTable + sizeof(FilterEntry) * (index % kFilters));
}

FaultEntry Firmware::faults(uint32_t index) const {
    auto entry = read_once<FaultEntry>(base_ + kFilterTable + sizeof(FaultEntry) * (index % kFilters));
    uint8_t down = 0;  // any value may stand where a bool belongs
    std::memcpy(&down, &entry.plan.link_down, sizeof down);
    entry.plan.link_down = down != 0;
    return entry;
}

void Firmware::post_event(EventId id, uint32_t code, uint32_t index) {
    const uint32_t next = (event_producer_ + 1) % kEventRing;
    if (next == window_->event_consumer.load(std::memory_order_acquire) % kEventRing) {
        count(kStatEventsLost);
        return;
    }
    write_words(events_ + event_producer_ * sizeof(Event), Event{Packed{id, code, index}.word(), 0});
    event_producer_ = next;
    count(kStatEvents);
}

// ---- sending

bool Firmware::next_send(std::span<const std::byte>* frame) {
    const uint32_t producer = window_->mailbox[kSendMailbox].low.load(std::memory_order_acquire) % send_size_;
    while (send_consumer_ != producer) {
        const auto d = read_once<SendDescriptor>(sends_ + send_consumer_ * sizeof(SendDescriptor));
        const std::byte* bytes = at(d.host, d.length, 1);
        if (bytes != nullptr && d.length >= kLeastSend && d.length <= kMostSend &&
            (d.flags & kFlagEnd) != 0) {
            *frame = {bytes, d.length};
            sending_bytes_ = d.length;
            return true;
        }
        send_done(false);
    }
    return false;
}

void Firmware::send_done(bool sent) {
    if (sent) {
        ++out_frames_;
        out_octets_ += sending_bytes_;
    } else {
        count(kStatOutErrors);
    }
    send_consumer_ = (send_consumer_ + 1) % send_size_;
}

// ---- receiving

// The next posted descriptor of that ring with its buffer; bad ones are skipped and counted.
bool Firmware::take_buffer(ReceiveRing& ring, uint32_t bytes, ReceiveDescriptor* out, std::byte** room) {
    const uint32_t producer = window_->mailbox[ring.mailbox].low.load(std::memory_order_acquire) % ring.size;
    while (ring.consumer != producer) {
        *out = read_once<ReceiveDescriptor>(ring.entries + ring.consumer * sizeof(ReceiveDescriptor));
        ring.consumer = (ring.consumer + 1) % ring.size;
        *room = at(out->host, out->length, 1);
        if (*room != nullptr && out->length >= bytes) return true;
        count(kStatInErrors);
    }
    count(ring.exhausted);
    return false;
}

bool Firmware::has_room(uint32_t bytes) const {
    const ReceiveRing& ring = bytes > standard_limit_ ? jumbo_ : standard_;
    if (ring.entries == nullptr) return true;
    const uint32_t next = (return_producer_ + 1) % return_size_;
    return next != window_->return_consumer.load(std::memory_order_acquire) % return_size_ &&
           ring.consumer != window_->mailbox[ring.mailbox].low.load(std::memory_order_acquire) % ring.size;
}

Delivery Firmware::deliver(std::span<const std::byte> head, std::span<const std::byte> body) {
    const auto bytes = static_cast<uint32_t>(head.size() + body.size());
    const bool large = bytes > standard_limit_;
    if ((large && jumbo_.entries == nullptr) || bytes > UINT16_MAX) return Delivery::too_long;
    const uint32_t next = (return_producer_ + 1) % return_size_;
    if (next == window_->return_consumer.load(std::memory_order_acquire) % return_size_) {
        count(kStatNoReturn);
        return Delivery::no_return;
    }
    ReceiveDescriptor d;
    std::byte* room = nullptr;
    if (!take_buffer(large ? jumbo_ : standard_, bytes, &d, &room)) return Delivery::no_descriptor;
    std::memcpy(room, head.data(), head.size());
    std::memcpy(room + head.size(), body.data(), body.size());
    d.length = static_cast<uint16_t>(bytes);
    d.flags = static_cast<uint16_t>(kFlagEnd | (large ? kFlagJumbo : 0));
    d.errors = 0;
    write_words(returns_ + return_producer_ * sizeof(ReceiveDescriptor), d);
    return_producer_ = next;
    ++in_frames_;
    in_octets_ += bytes;
    return Delivery::done;
}

void Firmware::count_dropped(uint32_t bytes) {
    count(bytes > standard_limit_ ? jumbo_.exhausted : standard_.exhausted);
}

// ---- telling the host

bool Firmware::publish() {
    bool news = false;
    const auto show = [&news](Word* word, uint32_t* shown, uint32_t value, bool interrupts) {
        if (*shown == value) return;
        *shown = value;
        word->store(value, std::memory_order_release);
        news = news || interrupts;
    };
    show(send_consumer_word_, &shown_send_, send_consumer_, false);  // no buffer has a waiter of its own
    show(return_producer_word_, &shown_return_, return_producer_, true);
    show(event_producer_word_, &shown_event_, event_producer_, true);
    if (!news) return false;
    // The host announces that it sleeps, then looks at the words above once more.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool wanted = window_->mailbox[kInterruptMailbox].low.load(std::memory_order_relaxed) == 0;
    const uint32_t state = window_->host_control.load(std::memory_order_relaxed);
    if (!wanted || (state & kInterruptState) != 0) {
        count(kStatInterruptsSaved);
        return false;
    }
    window_->host_control.store(state | kInterruptState, std::memory_order_relaxed);
    count(kStatInterrupts);
    return true;
}

// ---- sleeping

void Firmware::set_asleep(bool asleep, bool frames_wait) {
    window_->cpu_control.store(asleep ? kCpuHalt : 0, std::memory_order_relaxed);
    window_->cpu_b_control.store(asleep && frames_wait ? kCpuHalt : 0, std::memory_order_relaxed);
    if (asleep) std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Firmware::has_work() const {
    const Mailbox* m = window_->mailbox;
    return m[kSendMailbox].low.load(std::memory_order_relaxed) % send_size_ != send_consumer_ ||
           m[kCommandMailbox].low.load(std::memory_order_relaxed) % kCommandRing != command_consumer_;
}

// ---- statistics

void Firmware::update_statistics() {
    write64(statistics_, kStatInOctets, in_octets_);
    write64(statistics_, kStatInFrames, in_frames_);
    write64(statistics_, kStatOutOctets, out_octets_);
    write64(statistics_, kStatOutFrames, out_frames_);
    statistics_[kStatSendConsumer] = send_consumer_;
    statistics_[kStatSendProducer] =
        window_->mailbox[kSendMailbox].low.load(std::memory_order_relaxed) % send_size_;
    statistics_[kStatStandardConsumer] = standard_.consumer;
    statistics_[kStatJumboConsumer] = jumbo_.consumer;
    statistics_[kStatReturnProducer] = return_producer_;
    statistics_[kStatEventProducer] = event_producer_;
    for (uint32_t i = 0; i < kStatisticsWords; ++i)
        std::atomic_ref(host_statistics_[i]).store(statistics_[i], std::memory_order_relaxed);
    post_event(kStatisticsUpdated, 0, 0);
}

void Firmware::clear_statistics() {
    in_octets_ = in_frames_ = out_octets_ = out_frames_ = 0;
    for (uint32_t& word : statistics_) word = 0;
}

uint32_t Firmware::dropped() const {
    return statistics_[kStatNoStandard] + statistics_[kStatNoJumbo] + statistics_[kStatNoReturn];
}

}  // namespace viaduct::acenic::tigon
