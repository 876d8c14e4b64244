// SPDX-License-Identifier: BSD-2-Clause
// What acknowledgements and answers of the peer tell a sender: which frames have arrived, which are lost, what work has
// ended.
#include <algorithm>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/sender.hpp"

namespace viaduct::wire {

namespace {

// How much later a frame may arrive than one sent after it before it counts as lost.
constexpr Time kReordering = 50'000;

}  // namespace

// The peer has that frame: takes it out of all counts.
void Sender::mark_acked(Record& r, Time now) {
    r.acked = true;
    if (r.lost) {
        spurious_timeout_ |= !r.again;  // what counted as lost has arrived without having been sent again
        r.lost = false;
        --lost_;
    } else {
        --in_flight_;
    }
    const Time took = now - r.sent;
    if (!r.again) {
        sample_ = took;
        delivered_ = std::max(delivered_, r.sent);
    } else if (took >= round_trip_.smooth() / 2) {  // else it is the first copy that has arrived
        delivered_ = std::max(delivered_, r.sent);
    }
}

void Sender::note_credit(uint32_t credit) {
    if (!before(credit_, credit)) return;
    credit_ = credit;
    if (has_to_send()) link_.wake();
}

void Sender::on_acknowledge(const Header& h, const Selective* selective, Time now) {
    if (!reliable_) return;
    note_credit(h.credit);
    if (before(next_, h.acknowledge)) {
        ++link_.node().counters_.protocol_errors;
        return;
    }
    if (before(h.acknowledge, una_)) return;
    const uint32_t open_before = in_flight_ + lost_;
    sample_ = -1;
    spurious_timeout_ = false;
    for (; una_ != h.acknowledge; ++una_) {
        Record& r = record(una_);
        if (r.again) --again_;
        if (r.acked) {
            --sacked_;
        } else {
            mark_acked(r, now);
        }
    }
    if (selective != nullptr) {
        const uint32_t told = next_ != una_ ? std::min(next_ - una_ - 1, kWindow) : 0;
        for (uint32_t i = 0; i < told; ++i) {
            Record& r = record(una_ + 1 + i);
            if (!selective->has(i) || r.acked) continue;
            mark_acked(r, now);
            ++sacked_;
        }
    }
    const uint32_t newly = open_before - in_flight_ - lost_;
    if (newly != 0) {
        if (sample_ >= 0) round_trip_.sample(sample_);
        round_trip_.progress();
        settle_timeout();
        congestion_.acknowledged(newly);
        timer_from_ = stalled_from_ = now;
    }
    if (sacked_ != 0 || again_ != 0) find_losses();
    finish_in_order();
    release_responses();
    if (has_to_send()) link_.wake();
}

// The first acknowledgement after a timeout shows whether there was need of it. If there was none, the rest is under
// way as well; what is not is found lost by what arrives.
void Sender::settle_timeout() {
    if (!congestion_.has_timed_out()) return;
    if (!spurious_timeout_) return congestion_.was_right();
    congestion_.was_spurious();
    for (uint32_t s = una_; lost_ != 0 && s != next_; ++s) {
        Record& r = record(s);
        if (!r.lost || r.again) continue;
        r.lost = false;
        --lost_;
        ++in_flight_;
    }
}

// A frame is lost when one that was sent clearly later has arrived.
void Sender::find_losses() {
    const Time slack = std::max(round_trip_.smooth() / 4, kReordering);
    bool news = false;
    for (uint32_t s = una_; s != next_; ++s) {
        Record& r = record(s);
        if (r.acked || r.lost || r.sent + slack >= delivered_) continue;
        r.lost = true;
        --in_flight_;
        ++lost_;
        if (!news) first_lost_hint_ = una_;
        news = true;
    }
    if (!news) return;
    ++link_.node().counters_.losses_seen;
    if (!before(una_, recovery_end_)) {
        congestion_.lost();
        recovery_end_ = next_;
    }
}

void Sender::finish_in_order() {
    while (finished_ != posted_) {
        const Open& o = open(finished_);
        if (!o.all_sent) return;
        if (is_answered(o.work.operation) ? !o.answered : before(una_, o.end_sequence)) return;
        ++finished_;
        link_.node().host_.on_finished(link_.cookie(), o.work.tag, Outcome::ok);
        if (!link_.is_connected()) return;
    }
}

void Sender::release_responses() {
    while (responses_done_ != responses_begun_ && !before(una_, response(responses_done_).end_sequence))
        ++responses_done_;
}

Sender::Open* Sender::open_answer(uint32_t number, bool atomic) {
    if (number - finished_ >= posted_ - finished_) return nullptr;
    Open& o = open(number);
    if (!o.begun || o.answered || !is_answered(o.work.operation)) return nullptr;
    return (o.work.operation != Operation::read) == atomic ? &o : nullptr;
}

bool Sender::take_read_data(const Frame& f, Time now) {
    const ReadData d = read_read_data(f);
    const uint32_t n = payload_bytes(f);
    Open* o = open_answer(d.number, false);
    if (o == nullptr || d.total != o->work.total || d.offset != o->result || n > d.total - d.offset)
        return false;
    if (n == 0 && d.total != 0) return false;
    if (n != 0 && !link_.node().host_.place_result(link_.cookie(), o->work.tag, d.offset, payload_of(f), n)) {
        refused(d.number, Outcome::bad_source);  // our own memory went away under the read
        link_.end(Ended::bad_source, true, Reason::broken, 0, now);
        return true;
    }
    o->result += n;
    if (o->result != o->work.total) return true;
    o->answered = true;
    --answers_open_;
    finish_in_order();
    if (has_to_send()) link_.wake();
    return true;
}

bool Sender::take_atomic_data(const Frame& f, Time now) {
    const AtomicData d = read_atomic_data(f);
    Open* o = open_answer(d.number, true);
    if (o == nullptr) return false;
    const auto value = d.value;
    const auto narrow = static_cast<uint32_t>(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(
        o->work.width == 4 ? static_cast<const void*>(&narrow) : static_cast<const void*>(&value));
    if (!link_.node().host_.place_result(link_.cookie(), o->work.tag, 0, bytes, o->work.width)) {
        refused(d.number, Outcome::bad_source);  // as under a read
        link_.end(Ended::bad_source, true, Reason::broken, 0, now);
        return true;
    }
    o->answered = true;
    --answers_open_;
    finish_in_order();
    if (has_to_send()) link_.wake();
    return true;
}

}  // namespace viaduct::wire
