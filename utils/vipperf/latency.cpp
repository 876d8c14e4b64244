// SPDX-License-Identifier: BSD-2-Clause
// Ping-pong by messages, ping-pong by RDMA writes into memory that the target polls, and RDMA reads.
#include <cstring>

#include "core/sync/pause.hpp"
#include "utils/vipperf/loops.hpp"

namespace viaduct::vipperf {

namespace {

void stamp(std::vector<uint64_t>* stamps) {
    if (stamps != nullptr) stamps->push_back(ticks());
}

// The receive is posted again, and the send before taken back, while the new message is on its way: what a
// program does that cares for latency.
template <Completion how>
void send_ping_pong(Bundle& b, const Run& run, bool leader, uint64_t count, std::vector<uint64_t>* stamps) {
    constexpr bool sleeps = how == Completion::wait || how == Completion::cq_wait;
    constexpr Completion reaping = sleeps ? Completion::wait : Completion::queue;
    Arrival before{nullptr, nullptr};
    const auto send = [&](Channel& c) {
        b.post(c);
        if (before.descriptor != nullptr) b.repost(before);
        b.reap<reaping>(c, 1);
    };
    const bool check = b.plan().check != 0;
    const auto receive = [&](Channel& c) {
        before = b.receive<how>(c);
        if (before.descriptor->CS.Length != run.bytes)
            throw tools::ToolError("a message arrived that was not sent");
        if (check)
            b.verify(*before.channel, static_cast<std::byte*>(before.descriptor->DS[0].Local.Data.Address),
                     run.bytes);
    };
    stamp(stamps);
    for (uint64_t i = 0; i < count; ++i) {
        Channel& c = b.next_of(i);
        if (leader) send(c);
        receive(c);
        if (leader)
            stamp(stamps);
        else
            send(c);
    }
    if (leader) b.repost(before);
    if (!leader && before.descriptor != nullptr) b.reap_all();
}

// Waits until the other end has come as far: memory written before it is not mistaken for a message.
void meet(Bundle& b, bool leader) {
    Channel& c = b.channels()[0];
    if (leader) b.send_note(c, Note::go);
    const Arrival arrival = b.receive<Completion::queue>(c);
    b.repost(arrival);
    if (!leader) b.send_note(c, Note::go);
}

// Spins on the last byte of what is written here, which arrives last. Looks at the queue now and then: some
// NICs move data only when called, and it shows when the other end has left.
void await_flag(Bundle& b, Channel& c, const std::byte* at, uint8_t flag) {
    constexpr uint32_t kLooksPerPoll = 256;
    const std::atomic_ref<uint8_t> seen(*reinterpret_cast<uint8_t*>(const_cast<std::byte*>(at)));
    StallCheck stall_check;
    for (uint32_t looks = 1; seen.load(std::memory_order_acquire) != flag; ++looks) {
        cpu_pause();
        if (looks % kLooksPerPoll != 0) continue;
        if (b.try_receive<Completion::queue>(c).descriptor != nullptr)
            throw tools::ToolError("a message arrived that was not sent");
        stall_check.look();
    }
}

template <Completion how>
void write_ping_pong(Bundle& b, const Run& run, bool leader, uint64_t count, std::vector<uint64_t>* stamps) {
    std::byte* const out = b.outgoing();
    std::byte* const in = b.incoming();
    const uint64_t last = run.bytes - 1;
    const bool check = b.plan().check != 0;
    in[last] = std::byte{0};
    meet(b, leader);
    const auto write = [&](Channel& c, uint8_t flag) {
        if (check) std::memcpy(out, b.expected(c.sent), last);
        out[last] = std::byte{flag};
        b.post(c);
    };
    const auto await = [&](Channel& c, uint8_t flag) {
        await_flag(b, c, in + last, flag);
        if (check) b.verify(c, in, last);
    };
    stamp(stamps);
    for (uint64_t i = 0; i < count; ++i) {
        Channel& c = b.next_of(i);
        const uint8_t flag = b.next_flag();
        if (leader) write(c, flag);
        await(c, flag);
        if (leader)
            stamp(stamps);
        else
            write(c, flag);
        b.reap<how>(c, 0);
    }
}

template <Completion how>
void read_again_and_again(Bundle& b, const Run& run, uint64_t count, std::vector<uint64_t>* stamps) {
    const bool check = b.plan().check != 0;
    stamp(stamps);
    for (uint64_t i = 0; i < count; ++i) {
        Channel& c = b.next_of(i);
        b.post(c);
        b.reap<how>(c, 0);
        if (check) b.verify(c, b.incoming(), run.bytes);
        stamp(stamps);
    }
}

}  // namespace

void latency_loop(Bundle& b, const Run& run, bool leader, uint64_t count, std::vector<uint64_t>* stamps) {
    with_completion(b.plan().completion, [&]<Completion how>() {
        switch (b.plan().operation) {
            case Operation::send:
                return send_ping_pong<how>(b, run, leader, count, stamps);
            case Operation::write:
                return write_ping_pong<how>(b, run, leader, count, stamps);
            case Operation::read:
                if (leader) read_again_and_again<how>(b, run, count, stamps);
                return;
        }
    });
}

}  // namespace viaduct::vipperf
