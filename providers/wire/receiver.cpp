// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/receiver.hpp"

#include "providers/wire/bytes.hpp"
#include "providers/wire/header_words.hpp"
#include "providers/wire/link.hpp"

namespace viaduct::wire {

namespace {

bool is_fragment(Kind kind) { return kind == Kind::send || kind == Kind::write; }

// Other kinds may have fewer fields than a message.
bool is_whole_message(const Frame& f) {
    if (!is_fragment(f.header.kind)) return false;
    const Message m = read_message(f);
    return m.offset == 0 && payload_bytes(f) == m.total;
}

}  // namespace

Receiver::Receiver(Link& link) : link_(link) { early_places_.fill(ReorderBuffer::kNone); }

void Receiver::begin(bool reliable) {
    reliable_ = reliable;
    started_ = false;
    seen_.reset();
    current_ = Current{};
}

void Receiver::end(bool tell_host) {
    if (tell_host) abandon();
    current_ = Current{};
    for (uint16_t& place : early_places_) {
        if (place != ReorderBuffer::kNone) link_.node().reorder_.release(place);
        place = ReorderBuffer::kNone;
    }
    early_ = 0;
    started_ = false;
}

void Receiver::start(Time now) {
    started_ = true;
    take_held(now);
}

Selective Receiver::selective() const {
    Selective s;
    if (early_ == 0 || !reliable_) return s;
    for (uint32_t i = 0; i + 1 < kWindow; ++i)
        if (early_places_[(expected_ + 1 + i) % kWindow] != ReorderBuffer::kNone) s.set(i);
    return s;
}

void Receiver::note_duplicate() {
    ++link_.node().counters_.duplicates;
    link_.node().host_.on_dropped(link_.cookie());
}

void Receiver::on_frame(const Frame& f, Time now) {
    if (!reliable_) return on_frame_unreliable(f, now);
    Counters& counters = link_.node().counters_;
    const uint32_t ahead = f.header.sequence - expected_;
    if (before(f.header.sequence, expected_)) {
        note_duplicate();
        link_.want_ack(now, now);  // our acknowledgement may have been lost
        return;
    }
    if (ahead >= kWindow) {
        ++counters.beyond_window;
        return;
    }
    if (ahead != 0 || !started_) {
        if (!keep_early(f)) return;
        if (started_) {
            ++counters.early;
            link_.want_ack(now, now);
        }
        return;
    }
    take(f, now);
    if (!link_.is_connected()) return;  // what was refused is not acknowledged
    ++expected_;
    // A sender that waits in the middle of a message is answered at once; at its end there may be data to ride on.
    const Tuning& tuning = link_.node().tuning();
    const bool asked = (f.header.flags & kFlagAckNow) != 0;
    const bool whole = current_.phase == Phase::none;
    if ((f.header.flags & kFlagAgain) != 0 || (asked && !whole)) {
        link_.want_ack(now, now);
    } else {
        link_.want_ack(now + (asked ? tuning.ack_delay : tuning.ack_delay_max), now);
    }
    if (early_ != 0) take_held(now);
}

// Each frame counts once. One that comes after something newer is still good if it is a message by itself; a
// fragment is not (spec/reliability 6.1: whole or not at all, at most once, in any order).
void Receiver::on_frame_unreliable(const Frame& f, Time now) {
    const uint32_t sequence = f.header.sequence;
    if (!started_) {
        if (!before(sequence, expected_) && sequence - expected_ < kWindow) keep_early(f);
        return;
    }
    if (before(sequence, expected_)) {
        if (!is_whole_message(f) || expected_ - sequence > kWindow || seen_[sequence % kWindow] ||
            current_.phase != Phase::none) {
            note_duplicate();
            return;
        }
        seen_[sequence % kWindow] = true;
        return take(f, now);
    }
    if (sequence != expected_) abandon();
    pass_to(sequence);
    take(f, now);
}

// `sequence` has come; those before it that have not may come later.
void Receiver::pass_to(uint32_t sequence) {
    if (sequence - expected_ >= kWindow) seen_.reset();
    for (; expected_ != sequence && sequence - expected_ < kWindow; ++expected_)
        seen_[expected_ % kWindow] = false;
    seen_[sequence % kWindow] = true;
    expected_ = sequence + 1;
}

bool Receiver::keep_early(const Frame& f) {
    Counters& counters = link_.node().counters_;
    uint16_t& place = early_places_[f.header.sequence % kWindow];
    if (place != ReorderBuffer::kNone) {
        note_duplicate();
        return true;
    }
    place = link_.node().reorder_.keep(f.fields - kHeaderBytes, f.bytes);
    if (place == ReorderBuffer::kNone) {
        ++counters.reorder_full;
        return false;
    }
    ++early_;
    return true;
}

// Takes held frames whose turn has come. At Unreliable gaps are passed over: what is held was held before the
// start.
void Receiver::take_held(Time now) {
    ReorderBuffer& room = link_.node().reorder_;
    while (early_ != 0) {
        uint32_t sequence = expected_;
        if (!reliable_)
            while (early_places_[sequence % kWindow] == ReorderBuffer::kNone) ++sequence;
        uint16_t& slot = early_places_[sequence % kWindow];
        if (slot == ReorderBuffer::kNone) return;
        const uint16_t place = slot;
        slot = ReorderBuffer::kNone;
        --early_;
        Frame f;
        const std::byte* frame = room.frame(place);
        // It was checked when it came; only its numbers are read again.
        f.header.kind = static_cast<Kind>(load8(frame + 1));
        f.header.flags = load16(frame + 2) & kFlagsKnown;
        f.header.sequence = sequence;
        f.header.length = load16(frame + kLengthAt);
        f.fields = frame + kHeaderBytes;
        f.bytes = room.bytes(place);
        if (sequence != expected_) abandon();
        if (!reliable_) pass_to(sequence);
        take(f, now);
        room.release(place);
        if (!link_.is_connected()) return;
        if (reliable_) ++expected_;
        link_.want_ack(now, now);
    }
}

void Receiver::take(const Frame& f, Time now) {
    switch (f.header.kind) {
        case Kind::send:
        case Kind::write:
            return take_fragment(f, now);
        case Kind::read_request:
            return take_read_request(f, now);
        case Kind::atomic_request:
            return take_atomic_request(f, now);
        case Kind::read_data:
            if (!link_.out().take_read_data(f, now)) protocol_error(now);
            return;
        case Kind::atomic_data:
            if (!link_.out().take_atomic_data(f, now)) protocol_error(now);
            return;
        default:
            return protocol_error(now);
    }
}

void Receiver::take_fragment(const Frame& f, Time now) {
    const Message m = read_message(f);
    const uint32_t n = payload_bytes(f);
    const bool write = f.header.kind == Kind::write;
    if (n > m.total || m.offset > m.total - n || m.total > link_.traits().max_transfer ||
        (n == 0 && m.total != 0))
        return protocol_error(now);
    if (m.offset == 0) {
        if (current_.phase != Phase::none) {
            if (reliable_) return protocol_error(now);
            abandon();
        }
        if (n == m.total && !write) return take_whole(f, m, now);
        if (!begin_current(f, m, now)) return;
    } else {
        // While no message is under way the next offset is 0, which this one is not.
        const bool fits = m.number == current_.number && m.offset == current_.offset && m.total == current_.total &&
                          (current_.phase == Phase::discard || write == (current_.phase == Phase::write));
        if (!fits) {
            if (reliable_) return protocol_error(now);
            abandon();
            return;
        }
    }
    place(f, now);
}

void Receiver::take_whole(const Frame& f, const Message& m, Time now) {
    const bool has_immediate = (f.header.flags & kFlagImmediate) != 0;
    const HostResult result = link_.node().host_.whole_message(link_.cookie(), payload_of(f), m.total,
                                                               has_immediate ? &m.immediate : nullptr);
    if (result == HostResult::ok) return;
    refuse(result, m.number, now);
    current_ = Current{};  // nothing more of it comes
}

// False: it was refused, and nothing more is to be done with this frame.
bool Receiver::begin_current(const Frame& f, const Message& m, Time now) {
    Host& host = link_.node().host_;
    current_ = Current{};
    current_.number = m.number;
    current_.total = m.total;
    current_.immediate = m.immediate;
    current_.has_immediate = (f.header.flags & kFlagImmediate) != 0;
    HostResult result;
    if (f.header.kind == Kind::write) {
        const Target t = read_target(f);
        current_.handle = t.handle;
        current_.address = t.address;
        result = host.begin_write(link_.cookie(), t.handle, t.address, m.total, current_.immediate_or_null());
        current_.phase = Phase::write;
    } else {
        result = host.begin_message(link_.cookie(), m.total);
        current_.phase = Phase::message;
    }
    if (result == HostResult::ok) return true;
    refuse(result, m.number, now);
    return link_.is_connected();
}

void Receiver::place(const Frame& f, Time now) {
    Host& host = link_.node().host_;
    const std::byte* from = payload_of(f);
    const uint32_t n = payload_bytes(f);
    if (n != 0 && current_.phase == Phase::message) {
        host.place_message(link_.cookie(), current_.offset, from, n);
    } else if (n != 0 && current_.phase == Phase::write) {
        const HostResult result =
            host.place_write(link_.cookie(), current_.handle, current_.address + current_.offset, from, n,
                             current_.immediate_or_null());
        if (result != HostResult::ok) {
            refuse(result, current_.number, now);
            if (!link_.is_connected()) return;
        }
    }
    current_.offset += n;
    if (current_.offset != current_.total) return;
    const Current done = current_;
    current_ = Current{};
    if (done.phase == Phase::message) host.end_message(link_.cookie(), done.total, done.immediate_or_null());
    if (done.phase == Phase::write) host.end_write(link_.cookie(), done.total, done.immediate_or_null());
}

void Receiver::abandon() {
    if (current_.phase == Phase::none) return;
    ++link_.node().counters_.messages_lost;
    link_.node().host_.on_dropped(link_.cookie());
    if (current_.phase == Phase::message) link_.node().host_.abandon_message(link_.cookie());
    if (current_.phase == Phase::write)
        link_.node().host_.abandon_write(link_.cookie(), current_.immediate_or_null());
    current_ = Current{};
}

// What the host refuses breaks a reliable connection; at Unreliable only the message is dropped (spec/reliability 6.2).
void Receiver::refuse(HostResult result, uint32_t number, Time now) {
    current_.phase = Phase::discard;
    if (!reliable_) return;
    const Reason reason = result == HostResult::no_receive    ? Reason::no_receive
                          : result == HostResult::bad_receive ? Reason::bad_receive
                                                              : Reason::not_permitted;
    link_.end(Ended::refused_here, true, reason, number, now);
}

void Receiver::take_read_request(const Frame& f, Time now) {
    const ReadRequest r = read_read_request(f);
    if (!reliable_ || r.total > link_.traits().max_transfer) return protocol_error(now);
    const HostResult result = link_.node().host_.begin_read(link_.cookie(), r.handle, r.address, r.total);
    if (result != HostResult::ok) return refuse(result, r.number, now);
    if (!link_.out().respond_read(r)) protocol_error(now);
}

void Receiver::take_atomic_request(const Frame& f, Time now) {
    const AtomicRequest a = read_atomic_request(f);
    if (!reliable_ || a.operation < 1 || a.operation > 2 || (a.width != 4 && a.width != 8))
        return protocol_error(now);
    Work w;
    w.operation = a.operation == 1 ? Operation::fetch_add : Operation::compare_swap;
    w.width = a.width;
    w.total = a.width;
    w.handle = a.handle;
    w.address = a.address;
    w.operand = a.operand;
    w.compare = a.compare;
    uint64_t old = 0;
    const HostResult result = link_.node().host_.atomic(link_.cookie(), w, &old);
    if (result != HostResult::ok) return refuse(result, a.number, now);
    if (!link_.out().respond_atomic(a.number, old)) protocol_error(now);
}

void Receiver::protocol_error(Time now) {
    ++link_.node().counters_.protocol_errors;
    if (!reliable_) {  // a fault of the sender, but nothing to lose
        abandon();
        return;
    }
    link_.end(Ended::protocol, true, Reason::protocol, 0, now);
}

}  // namespace viaduct::wire
