// SPDX-License-Identifier: BSD-2-Clause
// The fast path of a message that is short, whole in one frame, in order, at a reliable level, on a
// connection that has nothing else under way. It takes a fraction of the instructions of the state machines.
// Each function first checks all conditions. When one does not hold it changes nothing and returns false, and
// the caller takes the slow path. Both paths bring the link into the same state.
#include <algorithm>
#include <cstring>

#include "core/copy/copy.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/crc32c.hpp"
#include "providers/wire/header_words.hpp"
#include "providers/wire/link.hpp"

namespace viaduct::wire {

namespace {

// How a frame of a message begins: version and kind.
constexpr uint16_t kBeginning = kVersion << 8 | static_cast<uint8_t>(Kind::send);

void copy_payload(std::byte* to, const std::byte* from, uint32_t n) {
    n <= 128 ? copy_small(to, from, n) : static_cast<void>(std::memcpy(to, from, n));
}

}  // namespace

// ---- out

bool Node::post_at_once(LinkId id, uint32_t tag, std::span<const std::byte> payload,
                        const uint32_t* immediate, Time now) {
    Link* link = find(id);
    return link != nullptr && link->post_at_once(tag, payload, immediate, now);
}

inline bool Sender::can_send_at_once(size_t bytes) const {
    return reliable_ && !has_to_send() && posted_ - finished_ <= work_mask_ && bytes <= room(Kind::send) &&
           bytes < link_.node().outlet_.zero_copy_from() && next_ - una_ < most_in_flight_ &&
           in_flight_ < congestion_.window();
}

// A frame of that message has been sent under the next number.
inline void Sender::note_at_once(uint32_t tag, uint32_t bytes, const uint32_t* immediate, Time now) {
    Record& r = record(next_);
    r.sent = now;
    r.item = posted_;
    r.offset = 0;
    r.bytes = static_cast<uint16_t>(bytes);
    r.kind = Kind::send;
    r.last = true;
    r.acked = r.lost = r.again = false;
    Open& o = open(posted_);
    o.work.operation = Operation::send;
    o.work.has_immediate = immediate != nullptr;
    o.work.fence = false;
    o.work.tag = tag;
    o.work.total = o.sent = bytes;
    o.work.immediate = immediate != nullptr ? *immediate : 0;
    o.first_sequence = next_;
    o.end_sequence = next_ + 1;
    o.receive_number = receives_++;
    o.result = 0;
    o.begun = o.all_sent = true;
    o.answered = false;
    if (una_ == next_) timer_from_ = stalled_from_ = now;
    ++next_;
    ++in_flight_;
    begun_ = ++posted_;
}

// Does what post, pump and transmit do when the fast path's conditions hold: nothing follows, so an
// acknowledgement is requested.
bool Link::post_at_once(uint32_t tag, std::span<const std::byte> payload, const uint32_t* immediate,
                        Time now) {
    if (!is_connected() || node_.is_keyed() || !out_.can_send_at_once(payload.size())) return false;
    const auto bytes = static_cast<uint32_t>(payload.size());
    std::byte* const frame = node_.outlet_.begin_frame(kHeaderBytes + kMessageBytes + bytes);
    if (frame == nullptr) return false;
    write_message(frame + kHeaderBytes,
                  {out_.next_number(), 0, bytes, immediate != nullptr ? *immediate : 0});
    copy_payload(frame + kHeaderBytes + kMessageBytes, payload.data(), bytes);
    Header h;
    h.kind = Kind::send;
    h.flags = kFlagLast | kFlagAckNow | (immediate != nullptr ? kFlagImmediate : 0);
    h.destination = peer_id_;
    h.source = id_;
    h.sequence = out_.next_sequence();
    h.acknowledge = in_.expected();
    h.credit = node_.host_.receives_posted(cookie_);
    h.pass = peer_pass_;
    h.length = static_cast<uint16_t>(kMessageBytes + bytes);
    HeaderWords words;
    make_words(h, words);
    write_words(frame, words);
    store32(frame + kCheckAt, crc32c(words, frame + kHeaderBytes, h.length));
    out_.note_at_once(tag, bytes, immediate, now);
    node_.outlet_.end_frame(frame, kHeaderBytes + h.length, peer_);
    note_said(kHeaderBytes + h.length, now);
    if (out_.in_flight() == 1) arm(out_.deadline());  // else it is armed already
    return true;
}

// ---- in

// True: the frame fits the fast path and has been taken. Before its check only the frame's place in the
// connection is read.
bool Node::take_fast(std::span<const std::byte> bytes, const NicAddress& from, Time now) {
    const std::byte* const frame = bytes.data();
    if (bytes.size() < kHeaderBytes + kMessageBytes || load16(frame) != kBeginning) return false;
    const uint32_t length = load16(frame + kLengthAt);
    if (length < kMessageBytes || length > bytes.size() - kHeaderBytes || length > kMaxFrame - kHeaderBytes)
        return false;
    Link* link = find(load32(frame + 4));
    return link != nullptr && link->take_fast(frame, length, from, now);
}

// Nothing is lost, early or sent again, and what has arrived is what came next: every frame that the peer may
// not have is in flight.
inline bool Sender::is_in_order(uint32_t acknowledge) const {
    return (sacked_ | again_ | lost_) == 0 && acknowledge - una_ <= next_ - una_;
}

// on_acknowledge without the loop over frames.
inline void Sender::acknowledged_in_order(uint32_t acknowledge, uint32_t credit, Time now) {
    note_credit(credit);
    if (const uint32_t newly = acknowledge - una_; newly != 0) {
        const Time latest = record(acknowledge - 1).sent;
        una_ = acknowledge;
        in_flight_ -= newly;
        delivered_ = std::max(delivered_, latest);
        round_trip_.sample(now - latest);
        congestion_.acknowledged(newly);
        timer_from_ = stalled_from_ = now;
        finish_in_order();
        release_responses();
    }
    if (has_to_send()) link_.wake();
}

inline bool Receiver::is_next(uint32_t sequence, uint32_t total) const {
    return reliable_ && started_ && early_ == 0 && current_.phase == Phase::none && sequence == expected_ &&
           total <= link_.traits().max_transfer;
}

inline void Receiver::take_next(const std::byte* message, uint32_t total, uint16_t flags, Time now) {
    const uint32_t immediate = load32(message + 12);
    const HostResult result = link_.node().host_.whole_message(
        link_.cookie(), message + kMessageBytes, total, (flags & kFlagImmediate) != 0 ? &immediate : nullptr);
    if (result != HostResult::ok) [[unlikely]] {
        refuse(result, load32(message), now);
        current_ = Current{};
        return;  // what was refused is not acknowledged
    }
    ++expected_;
    const Tuning& tuning = link_.node().tuning();
    const bool asked = (flags & kFlagAckNow) != 0;
    link_.want_ack(now + (asked ? tuning.ack_delay : tuning.ack_delay_max), now);
}

bool Link::take_fast(const std::byte* frame, uint32_t length, const NicAddress& from, Time now) {
    if (!is_connected() || load64(frame + kPassAt) != fast_pass_ || !is_same(from, peer_) ||
        load32(frame + 8) != peer_id_)
        return false;
    const std::byte* const message = frame + kHeaderBytes;
    const uint32_t total = length - kMessageBytes, acknowledge = load32(frame + 16);
    const uint16_t flags = load16(frame + 2);
    if (load32(message + 4) != 0 || load32(message + 8) != total ||
        (flags & (kFlagAgain | kFlagTagged)) != 0 || !in_.is_next(load32(frame + 12), total) ||
        !out_.is_in_order(acknowledge))
        return false;
    HeaderWords words;
    read_words(frame, words);
    if (load32(frame + kCheckAt) != crc32c(words, message, length)) return false;
    ++node_.counters_.frames_in;
    node_.counters_.bytes_in += kHeaderBytes + length;
    received_at_ = now;
    out_.acknowledged_in_order(acknowledge, load32(frame + 20), now);
    if (!is_connected()) return true;
    in_.take_next(message, total, flags, now);
    // The acknowledgement may have shortened the timeout of the rest.
    if (is_connected() && !out_.quiet()) arm(out_.deadline());
    return true;
}

}  // namespace viaduct::wire
