// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/sender.hpp"

#include <algorithm>
#include <bit>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"

namespace viaduct::wire {

namespace {

Kind kind_of(Operation operation) {
    switch (operation) {
        case Operation::send:
            return Kind::send;
        case Operation::write:
            return Kind::write;
        case Operation::read:
            return Kind::read_request;
        case Operation::fetch_add:
        case Operation::compare_swap:
            return Kind::atomic_request;
    }
    return Kind::send;
}

}  // namespace

Sender::Sender(Link& link)
    : link_(link),
      work_mask_(link.node().tuning().queue_depth - 1),
      record_mask_(std::bit_ceil(link.node().tuning().window) - 1),
      work_(new Open[link.node().tuning().queue_depth]),
      records_(new Record[record_mask_ + 1]),
      responses_(new Response[kMaxReads]) {}

void Sender::begin(uint32_t first_sequence, bool reliable) {
    reliable_ = reliable;
    frame_bytes_ = kMinFrame;
    most_in_flight_ = 1;
    posted_ = begun_ = finished_ = receives_ = answers_open_ = 0;
    responses_due_ = responses_begun_ = responses_done_ = 0;
    una_ = next_ = recovery_end_ = first_lost_hint_ = first_sequence;
    in_flight_ = lost_ = sacked_ = again_ = credit_ = 0;
    delivered_ = timer_from_ = stalled_from_ = 0;
    round_trip_.begin(link_.node().tuning());
    congestion_.begin(1);
}

void Sender::set_path(uint32_t frame_bytes, uint32_t window) {
    frame_bytes_ = frame_bytes;
    most_in_flight_ = std::clamp(window, 1u, record_mask_ + 1);
    congestion_.begin(most_in_flight_);
}

bool Sender::takes_receive(const Work& w) const {
    return w.operation == Operation::send || (w.operation == Operation::write && w.has_immediate);
}

bool Sender::post(const Work& work) {
    if (posted_ - finished_ > work_mask_) return false;
    // Field by field and where it stays. What is copied in larger pieces than it was written in cannot be
    // read before all earlier writes of the processor are done, those to memory of the other end included.
    Open& o = open(posted_);
    o.work = work;
    o.sent = o.first_sequence = o.end_sequence = o.result = 0;
    o.receive_number = receives_;
    o.begun = o.all_sent = o.answered = false;
    if (takes_receive(work)) ++receives_;
    ++posted_;
    return true;
}

bool Sender::respond_read(const ReadRequest& r) {
    if (responses_due_ - responses_done_ == kMaxReads) return false;
    Response& response = this->response(responses_due_);
    response = Response{};
    response.number = r.number;
    response.handle = r.handle;
    response.total = r.total;
    response.address = r.address;
    ++responses_due_;
    link_.wake();
    return true;
}

bool Sender::respond_atomic(uint32_t number, uint64_t value) {
    if (responses_due_ - responses_done_ == kMaxReads) return false;
    Response& response = this->response(responses_due_);
    response = Response{};
    response.is_atomic = true;
    response.number = number;
    response.value = value;
    ++responses_due_;
    link_.wake();
    return true;
}

uint32_t Sender::room(Kind kind) const { return frame_bytes_ - kHeaderBytes - field_bytes(kind); }

// VIA has no flow control: whether a receive is there is decided when the first fragment arrives. The credit
// only keeps the rest of a long message back until then.
bool Sender::waits_for_credit(const Open& o) const {
    return o.sent != 0 && takes_receive(o.work) && !before(o.receive_number, credit_) &&
           !before(o.first_sequence, una_);
}

// The next new frame, in order: responses to the peer, then our own work. Changes nothing.
bool Sender::next_record(Record* r) {
    *r = Record{};
    if (responses_begun_ != responses_due_) {
        const Response& answer = response(responses_begun_);
        r->kind = answer.is_atomic ? Kind::atomic_data : Kind::read_data;
        r->item = responses_begun_;
        r->offset = answer.sent;
        r->bytes = static_cast<uint16_t>(answer.is_atomic ? 0 : std::min(answer.total - answer.sent, room(r->kind)));
        r->last = answer.is_atomic || answer.sent + r->bytes == answer.total;
        return true;
    }
    if (begun_ == posted_) return false;
    const Open& o = open(begun_);
    if (!o.begun) {
        if (o.work.fence && answers_open_ != 0) return false;
        if (is_answered(o.work.operation) && answers_open_ == link_.node().tuning().max_reads) return false;
    } else if (waits_for_credit(o)) {
        return false;
    }
    r->kind = kind_of(o.work.operation);
    r->item = begun_;
    r->offset = o.sent;
    if (is_answered(o.work.operation)) {
        r->last = true;
    } else {
        r->bytes = static_cast<uint16_t>(std::min(o.work.total - o.sent, room(r->kind)));
        r->last = o.sent + r->bytes == o.work.total;
    }
    return true;
}

// A new frame with number next_ was sent.
void Sender::note_sent(const Record& r) {
    const uint32_t sequence = next_++;
    if (r.kind == Kind::read_data || r.kind == Kind::atomic_data) {
        Response& answer = response(r.item);
        answer.sent += r.bytes;
        if (!r.last) return;
        answer.all_sent = true;
        answer.end_sequence = sequence + 1;
        ++responses_begun_;
        return;
    }
    Open& o = open(r.item);
    if (!o.begun) {
        o.begun = true;
        o.first_sequence = sequence;
        if (is_answered(o.work.operation)) ++answers_open_;
    }
    o.sent += r.bytes;
    if (!r.last) return;
    o.all_sent = true;
    o.end_sequence = sequence + 1;
    ++begun_;
}

Sender::Step Sender::send_new(Time now) {
    if (next_ - una_ >= most_in_flight_ || in_flight_ >= congestion_.window()) return Step::nothing;
    Record& next = record(next_);  // of nothing yet; in its place for the reason of post()
    if (!next_record(&next)) return Step::nothing;
    const Step step = transmit(next_, next, now);
    if (step != Step::sent) return step;
    if (una_ == next_) timer_from_ = stalled_from_ = now;
    ++in_flight_;
    note_sent(next);
    return Step::sent;
}

Sender::Step Sender::send_lost(Time now) {
    if (lost_ == 0 || in_flight_ >= congestion_.window()) return Step::nothing;
    uint32_t sequence = before(first_lost_hint_, una_) ? una_ : first_lost_hint_;
    while (!record(sequence).lost) ++sequence;
    Record& r = record(sequence);
    const bool first_time = !r.again;
    r.again = true;
    const Step step = transmit(sequence, r, now);
    if (step == Step::blocked) r.again = !first_time;
    if (step != Step::sent) return step;
    r.lost = false;
    --lost_;
    ++in_flight_;
    if (first_time) ++again_;
    first_lost_hint_ = sequence + 1;
    ++link_.node().counters_.retransmitted;
    link_.node().host_.on_retransmitted(link_.cookie());
    return Step::sent;
}

// Our memory, or memory the peer was allowed to read, is unmapped: nothing sensible can be sent under that
// number.
void Sender::source_failed(Time now) {
    const bool ours = failed_.kind == Kind::send || failed_.kind == Kind::write;
    if (!ours) {
        link_.end(Ended::refused_here, true, Reason::not_permitted, response(failed_.item).number, now);
        return;
    }
    refused(failed_.item, Outcome::bad_source);
    link_.end(Ended::bad_source, true, Reason::broken, 0, now);
}

bool Sender::pump(Time now) {
    if (!reliable_) return pump_unreliable(now);
    while (has_to_send()) {
        Step step = send_lost(now);
        if (step == Step::nothing) step = send_new(now);
        if (step == Step::sent) continue;
        if (step == Step::ended) source_failed(now);
        return step != Step::blocked;
    }
    return true;
}

// Everything once and as it comes: a message is finished when its last fragment was sent.
bool Sender::pump_unreliable(Time now) {
    while (begun_ != posted_) {
        Open& o = open(begun_);
        Record r;
        r.kind = kind_of(o.work.operation);
        r.item = begun_;
        r.offset = o.sent;
        r.bytes = static_cast<uint16_t>(std::min(o.work.total - o.sent, room(r.kind)));
        r.last = o.sent + r.bytes == o.work.total;
        const Step step = transmit(next_, r, now);
        if (step == Step::blocked) return false;
        if (step == Step::sent) note_sent(r);
        una_ = next_;
        if (step == Step::ended) ++begun_;
        if (begun_ != finished_) {
            const uint32_t tag = open(finished_++).work.tag;
            link_.node().host_.on_finished(link_.cookie(), tag,
                                           step == Step::ended ? Outcome::bad_source : Outcome::ok);
            if (!link_.is_connected()) return true;
        }
    }
    return true;
}

void Sender::refused(uint32_t number, Outcome outcome) {
    if (number != finished_ || finished_ == posted_) return;
    ++finished_;
    link_.node().host_.on_finished(link_.cookie(), open(number).work.tag, outcome);
}

void Sender::give_up() {
    if (finished_ == posted_ || !open(finished_).begun) return;
    const uint32_t tag = open(finished_++).work.tag;
    link_.node().host_.on_finished(link_.cookie(), tag, Outcome::gave_up);
}

Time Sender::deadline() const {
    return !reliable_ || una_ == next_ ? kNoTime : timer_from_ + round_trip_.timeout();
}

bool Sender::on_time(Time now) {
    if (now < deadline()) return true;
    const Node& node = link_.node();
    // A silent peer makes no progress either. How long it may be silent is the link's to decide.
    const Time since = std::max({stalled_from_, node.awake_since_, link_.frames_since()});
    if (now - since >= node.tuning_.give_up) return false;
    for (uint32_t s = una_; s != next_; ++s) {
        Record& r = record(s);
        if (r.acked || r.lost) continue;
        r.lost = true;
        ++lost_;
    }
    in_flight_ = 0;
    first_lost_hint_ = una_;
    recovery_end_ = next_;
    congestion_.timed_out();
    round_trip_.back_off();
    timer_from_ = now;
    ++link_.node().counters_.timeouts;
    link_.wake();
    return true;
}

}  // namespace viaduct::wire
