// SPDX-License-Identifier: BSD-2-Clause
// Streams, one way or both: messages with credit given back by the receiver (VIA has no flow control), RDMA
// writes and reads as many at once as the send queue holds. A stream ends when the other side says that it
// has everything.
#include <algorithm>

#include "utils/vipperf/loops.hpp"

namespace viaduct::vipperf {

namespace {

constexpr uint64_t kTenths = 10;

// A stamp at the first message and after every tenth of them.
class Marks {
public:
    Marks(std::vector<uint64_t>* stamps, uint64_t count)
        : stamps_(stamps),
          step_(std::max<uint64_t>(count / kTenths, 1)),
          next_(stamps != nullptr ? 0 : UINT64_MAX) {}
    void pass(uint64_t number) {
        if (number < next_) [[likely]]
            return;
        if (stamps_->size() < stamps_->capacity()) stamps_->push_back(ticks());
        next_ += step_;
    }

private:
    std::vector<uint64_t>* stamps_;
    uint64_t step_;
    uint64_t next_;
};

// One end of a stream of messages.
template <Completion how>
class MessageStream {
public:
    MessageStream(Bundle& b, const Run& run, uint64_t count, std::vector<uint64_t>* stamps)
        : b_(b),
          bytes_(run.bytes),
          count_(count),
          marks_(stamps, count),
          grain_(std::max(1u, b.plan().depth / 4)),
          received_(b.take_early()) {}

    void send_all() {
        for (uint64_t i = 0; i < count_; ++i) {
            marks_.pass(i);
            Channel& c = b_.next_of(i);
            while (c.credits == 0) take(b_.receive<how>(c));
            send_one(c);
        }
        await_done();
        marks_.pass(count_);
    }

    void receive_all() {
        for (uint64_t i = 0; received_ < count_; ++i) {
            marks_.pass(received_);
            take(b_.receive<how>(b_.next_of(i)));
        }
        marks_.pass(count_);
        b_.send_note(b_.channels()[0], Note::done);
    }

    void both_ways() {
        const size_t channels = b_.channels().size();
        StallCheck stall_check;
        for (uint64_t sent = 0, looked = 0; sent < count_ || received_ < count_;) {
            marks_.pass(received_);
            Channel& next = b_.next_of(sent);
            const bool can_send = sent < count_ && next.credits != 0;
            if (can_send) {
                send_one(next);
                ++sent;
            }
            Channel& c = channels == 1 ? next : b_.channels()[looked++ % channels];
            const Arrival arrival = can_send || channels > 1 ? b_.try_receive<how>(c) : b_.receive<how>(c);
            if (arrival.descriptor != nullptr) {
                take(arrival);
            } else if (!can_send) {
                stall_check.look();
            }
        }
        b_.send_note(b_.channels()[0], Note::done);
        await_done();
        marks_.pass(count_);
        // The other end may have begun the next stream. Between the VIs of a completion queue there is no order:
        // its first messages may have come before the note.
        b_.keep_early(received_ - count_);
    }

private:
    void send_one(Channel& c) {
        b_.make_room(c);
        b_.post(c);
        --c.credits;
    }

    void take(const Arrival& a) {
        VIP_DESCRIPTOR* d = a.descriptor;
        Channel& c = *a.channel;
        const Note note = Bundle::note_of(d);
        if (note == Note::none) [[likely]] {
            if (d->CS.Length != bytes_) [[unlikely]]
                throw tools::ToolError("a message arrived that was not sent");
            if (b_.plan().check != 0) [[unlikely]]
                b_.verify(c, static_cast<std::byte*>(d->DS[0].Local.Data.Address), bytes_);
            b_.repost(a);
            ++received_;
            if (++c.ungranted == grain_) {
                c.ungranted = 0;
                b_.send_note(c, Note::credit, grain_);
            }
            return;
        }
        if (note == Note::credit) c.credits += Bundle::value_of(d);
        if (note == Note::done) done_ = true;
        b_.repost(a);
    }

    // Done comes on the first channel, behind whatever credit is under way there.
    void await_done() {
        while (!done_) take(b_.receive<how>(b_.channels()[0]));
    }

    Bundle& b_;
    uint64_t bytes_;
    uint64_t count_;
    Marks marks_;
    uint32_t grain_;
    uint64_t received_;
    bool done_ = false;
};

// Writes (or reads) of this end; with room made in time the send queues never run empty.
void move_all(Bundle& b, uint64_t count, std::vector<uint64_t>* stamps) {
    Marks marks(stamps, count);
    for (uint64_t i = 0; i < count; ++i) {
        marks.pass(i);
        Channel& c = b.next_of(i);
        b.make_room(c);
        b.post(c);
    }
    for (Channel& c : b.channels()) c.sent = 0;
}

Note receive_note(Bundle& b, Channel& c) {
    const Arrival arrival = b.receive<Completion::queue>(c);
    const Note note = Bundle::note_of(arrival.descriptor);
    b.repost(arrival);
    return note;
}

// Everything this end has written is there when a message behind it has arrived, on each channel.
void writes_end(Bundle& b, bool wrote, bool was_written) {
    if (wrote) {
        for (Channel& c : b.channels()) b.send_note(c, Note::fin);
    }
    if (was_written) {
        for (Channel& c : b.channels()) {
            while (receive_note(b, c) != Note::fin) {
            }
        }
        b.send_note(b.channels()[0], Note::done);
    }
    if (wrote) {
        while (receive_note(b, b.channels()[0]) != Note::done) {
        }
    }
}

void rdma_stream(Bundle& b, const Run& run, bool leader, uint64_t count, std::vector<uint64_t>* stamps) {
    const bool moves = leader || run.both_ways != 0;
    if (moves) move_all(b, count, stamps);
    if (b.plan().operation == Operation::write) writes_end(b, moves, !leader || run.both_ways != 0);
    b.reap_all();
}

}  // namespace

void stream_loop(Bundle& b, const Run& run, bool leader, uint64_t count, std::vector<uint64_t>* stamps) {
    if (b.plan().operation != Operation::send) return rdma_stream(b, run, leader, count, stamps);
    with_completion(b.plan().completion, [&]<Completion how>() {
        MessageStream<how> stream(b, run, count, stamps);
        if (run.both_ways != 0) return stream.both_ways();
        leader ? stream.send_all() : stream.receive_all();
    });
}

}  // namespace viaduct::vipperf
