// SPDX-License-Identifier: BSD-2-Clause
// What a frame of the sender is made of: header, fields, and payload, which is copied or sent zero-copy.
#include <algorithm>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/sender.hpp"

namespace viaduct::wire {

namespace {

// Acknowledgements are requested so often in a long stream.
constexpr uint32_t kAckEvery = 16;

}  // namespace

// True when the sender will have to wait after this frame.
bool Sender::nothing_follows(const Record& r) const {
    if (in_flight_ + 1 >= std::min(congestion_.window(), most_in_flight_)) return true;
    if (!r.last) {
        if (r.kind != Kind::send && r.kind != Kind::write) return false;
        const Open& o = work_[r.item & work_mask_];
        return r.offset == 0 && takes_receive(o.work) && !before(o.receive_number, credit_);
    }
    const bool is_response = r.kind == Kind::read_data || r.kind == Kind::atomic_data;
    return responses_due_ - responses_begun_ == (is_response ? 1u : 0u) && posted_ - begun_ == (is_response ? 0u : 1u);
}

// The payload of what is sent for the first time may stay where it is, if the peer will ask for it again when
// it is damaged. What the peer reads may change at any time: it is copied.
bool Sender::may_lend(const Record& r) const {
    return reliable_ && !r.again && (r.kind == Kind::send || r.kind == Kind::write) &&
           r.bytes >= link_.node().outlet_.zero_copy_from();
}

// Fields, and the payload unless it goes zero-copy. False: memory cannot be read.
bool Sender::write_fields(std::byte* at, const Record& r, bool zero_copy) {
    Host& host = link_.node().host_;
    std::byte* const payload = at + field_bytes(r.kind);
    switch (r.kind) {
        case Kind::read_data: {
            const Response& answer = response(r.item);
            write_read_data(at, {answer.number, r.offset, answer.total});
            return r.bytes == 0 || host.read_memory(link_.cookie(), answer.handle, answer.address + r.offset,
                                                    payload, r.bytes) == HostResult::ok;
        }
        case Kind::atomic_data:
            write_atomic_data(at, {response(r.item).number, 0, response(r.item).value});
            return true;
        default:
            break;
    }
    const Work& w = open(r.item).work;
    switch (r.kind) {
        case Kind::read_request:
            write_read_request(at, {w.address, w.handle, w.total, r.item});
            return true;
        case Kind::atomic_request:
            write_atomic_request(
                at, {w.address, w.handle, r.item, w.operand, w.compare,
                     static_cast<uint8_t>(w.operation == Operation::fetch_add ? 1 : 2), w.width});
            return true;
        case Kind::write:
            write_target(at + kMessageBytes, {w.address, w.handle});
            [[fallthrough]];
        default:
            write_message(at, {r.item, r.offset, w.total, w.immediate});
            return r.bytes == 0 || zero_copy ||
                   host.read_source(link_.cookie(), w.tag, r.offset, payload, r.bytes);
    }
}

Sender::Step Sender::transmit(uint32_t sequence, Record& r, Time now) {
    const uint32_t length = field_bytes(r.kind) + r.bytes;
    std::byte* const frame = link_.begin_frame(kHeaderBytes + length);
    if (frame == nullptr) return Step::blocked;
    Piece pieces[kMostPieces];
    uint32_t zero_copied = 0;
    if (may_lend(r))
        zero_copied =
            link_.node().host_.lend_source(link_.cookie(), open(r.item).work.tag, r.offset, r.bytes, pieces);
    if (!write_fields(frame + kHeaderBytes, r, zero_copied != 0)) [[unlikely]] {
        link_.node().outlet_.end_frame(frame, 0, link_.peer());
        failed_ = r;
        return Step::ended;
    }
    Header h = link_.header(r.kind, length);
    h.sequence = sequence;
    if (r.last) h.flags |= kFlagLast;
    if (r.again) h.flags |= kFlagAgain;
    if (r.again || sequence % kAckEvery == kAckEvery - 1 || nothing_follows(r)) h.flags |= kFlagAckNow;
    if ((r.kind == Kind::send || r.kind == Kind::write) && open(r.item).work.has_immediate)
        h.flags |= kFlagImmediate;
    link_.end_frame(frame, h, now, std::span<const Piece>(pieces, zero_copied));
    r.sent = now;
    return Step::sent;
}

}  // namespace viaduct::wire
