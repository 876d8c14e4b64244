// SPDX-License-Identifier: BSD-2-Clause
// The outgoing half of a connection: work is cut into sequenced frames, frames are kept in mind until the
// peer has them, work is finished in posting order. Payload is fetched from the host again for each
// retransmission; nothing is copied aside. Used by Link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "providers/wire/congestion_control.hpp"
#include "providers/wire/format.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::wire {

class Link;

// The peer sends data back.
inline bool is_answered(Operation operation) { return operation >= Operation::read; }

class Sender {
public:
    explicit Sender(Link&);

    void begin(uint32_t first_sequence, bool reliable);
    void set_path(uint32_t frame_bytes, uint32_t window);
    void raise_path(uint32_t frame_bytes) { frame_bytes_ = std::max(frame_bytes_, frame_bytes); }

    bool post(const Work&);
    // fast_path.cpp
    bool can_send_at_once(size_t bytes) const;
    uint32_t next_number() const { return posted_; }
    void note_at_once(uint32_t tag, uint32_t bytes, const uint32_t* immediate, Time now);
    bool is_in_order(uint32_t acknowledge) const;
    void acknowledged_in_order(uint32_t acknowledge, uint32_t credit, Time now);  // when it is
    // What the peer has asked us for. False: more than it may ask at once.
    bool respond_read(const ReadRequest&);
    bool respond_atomic(uint32_t number, uint64_t value);

    // Sends what may be sent. False: the outlet is full, try again.
    bool pump(Time now);
    void note_credit(uint32_t credit);
    void on_acknowledge(const Header&, const Selective*, Time now);
    // Data of our reads and atomics. False: no peer sends that.
    bool take_read_data(const Frame&, Time now);
    bool take_atomic_data(const Frame&, Time now);
    // The peer refused the work of that number.
    void refused(uint32_t number, Outcome);
    // Retransmission timer. False: it is hopeless.
    bool on_time(Time now);
    // Tells what becomes of the oldest work when the connection is given up.
    void give_up();

    Time deadline() const;
    bool quiet() const { return una_ == next_; }
    uint32_t next_sequence() const { return next_; }
    uint32_t frame_bytes() const { return frame_bytes_; }
    uint32_t window() const { return congestion_.window(); }
    uint32_t in_flight() const { return in_flight_; }
    uint32_t work_open() const { return posted_ - finished_; }
    Time progressed() const { return stalled_from_; }
    Time round_trip() const { return round_trip_.smooth(); }

private:
    // A piece of work that is not finished.
    struct Open {
        Work work;
        uint32_t sent = 0;            // bytes
        uint32_t first_sequence = 0;  // valid when begun
        uint32_t end_sequence = 0;    // behind its last frame; valid when all_sent
        uint32_t receive_number = 0;  // which of the peer's receives it takes
        uint32_t result = 0;          // reads: bytes that have come back
        bool begun = false, all_sent = false, answered = false;
    };
    // Responses to the peer.
    struct Response {
        bool is_atomic = false;
        uint32_t number = 0, handle = 0, total = 0, sent = 0;
        uint64_t address = 0, value = 0;
        uint32_t end_sequence = 0;
        bool all_sent = false;
    };
    // A frame the peer may not have.
    struct Record {
        Time sent = 0;
        uint32_t item = 0;  // number of the work or response
        uint32_t offset = 0;
        uint16_t bytes = 0;
        Kind kind{};
        bool last = false, acked = false, lost = false, again = false;
    };
    enum class Step : uint8_t { sent, nothing, blocked, ended };

    Open& open(uint32_t number) { return work_[number & work_mask_]; }
    Response& response(uint32_t number) { return responses_[number % kMaxReads]; }
    Record& record(uint32_t sequence) { return records_[sequence & record_mask_]; }

    bool takes_receive(const Work& w) const;
    bool waits_for_credit(const Open&) const;
    uint32_t room(Kind) const;
    bool has_to_send() const { return lost_ != 0 || begun_ != posted_ || responses_begun_ != responses_due_; }
    bool next_record(Record*);
    void note_sent(const Record&);
    Step send_new(Time now);
    Step send_lost(Time now);
    Step transmit(uint32_t sequence, Record&, Time now);
    bool may_lend(const Record&) const;
    bool write_fields(std::byte* at, const Record&, bool zero_copy);
    bool nothing_follows(const Record&) const;
    void mark_acked(Record&, Time now);
    void settle_timeout();
    void find_losses();
    void source_failed(Time now);
    void finish_in_order();
    void release_responses();
    Open* open_answer(uint32_t number, bool atomic);
    bool pump_unreliable(Time now);

    Link& link_;
    uint32_t work_mask_, record_mask_;
    std::unique_ptr<Open[]> work_;
    std::unique_ptr<Record[]> records_;
    std::unique_ptr<Response[]> responses_;

    bool reliable_ = true;
    uint32_t frame_bytes_ = kMinFrame, most_in_flight_ = 1;
    uint32_t posted_ = 0, begun_ = 0, finished_ = 0;  // numbers of work: begun_ is the one being cut
    uint32_t receives_ = 0;                           // peer receives that posted work takes
    uint32_t answers_open_ = 0;                       // reads and atomics begun and not answered
    uint32_t responses_due_ = 0, responses_begun_ = 0, responses_done_ = 0;
    uint32_t una_ = 0, next_ = 0;  // sequence: oldest the peer may not have, next to be used
    uint32_t in_flight_ = 0, lost_ = 0, sacked_ = 0, again_ = 0;
    uint32_t first_lost_hint_ = 0;
    uint32_t recovery_end_ = 0;
    uint32_t credit_ = 0;
    Time delivered_ = 0;  // latest sending time of a frame that has arrived
    Time timer_from_ = 0, stalled_from_ = 0;
    Time sample_ = -1;
    bool spurious_timeout_ = false;  // the acknowledgement being taken shows that a timeout was not needed
    Record failed_;  // whose memory could not be read
    RoundTrip round_trip_;
    Congestion congestion_;
};

}  // namespace viaduct::wire
