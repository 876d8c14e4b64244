// SPDX-License-Identifier: BSD-2-Clause
// The reference model: what two ends of a connection may see of each other's work, byte by byte. A Station is
// a node with memory of its own that does seeded work and holds everything that arrives against what was
// sent.
#pragma once

#include <vipl.h>

#include <array>
#include <optional>
#include <string>

#include "tests/wire/simulated_wire.hpp"

namespace viaduct::wire::test {

inline constexpr Time kSecond = 1'000'000'000;

// A byte of message `number` in direction `stream`, the same wherever it is asked for.
inline std::byte pattern(uint64_t stream, uint64_t number, uint64_t offset) {
    uint64_t z =
        stream * 0x9E3779B97F4A7C15u + number * 0xBF58476D1CE4E5B9u + (offset >> 3) * 0x94D049BB133111EBu;
    z ^= z >> 29;
    z *= 0xD6E8FEB86659FD93u;
    z ^= z >> 32;
    return static_cast<std::byte>(z >> (offset & 7) * 8);
}

// What a direction's work is made of: everything follows from its seed, so the receiver has it too.
struct Plan {
    uint64_t seed = 1;
    bool reliable = true;
    uint32_t largest = 3000;
    bool rdma = true;

    uint64_t roll(uint64_t number) const {
        uint64_t z = seed + (number + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    Operation operation(uint64_t number) const {
        const uint64_t r = roll(number) % 100;
        if (!rdma || r < 55) return Operation::send;
        if (r < 75 || !reliable) return Operation::write;
        if (r < 90) return Operation::read;
        return r < 95 ? Operation::fetch_add : Operation::compare_swap;
    }
    bool immediate(uint64_t number) const {
        const Operation op = operation(number);
        return (op == Operation::send || op == Operation::write) && (roll(number) >> 8) % 4 == 0;
    }
    bool fence(uint64_t number) const { return (roll(number) >> 12) % 8 == 0; }
    uint32_t length(uint64_t number) const {
        const uint64_t r = roll(number) >> 16;
        if (!reliable)
            return 8 + static_cast<uint32_t>(r / 8 % (r % 8 == 0 ? largest : 200u));  // it carries its number
        if (operation(number) >= Operation::fetch_add) return 8;
        switch (r % 8) {
            case 0:
                return 0;
            case 1:
                return static_cast<uint32_t>(r / 8 % (largest + 1));
            default:
                return static_cast<uint32_t>(r / 8 % 200);
        }
    }
    bool takes_receive(uint64_t number) const {
        return operation(number) == Operation::send ||
               (operation(number) == Operation::write && immediate(number));
    }
    uint64_t target(uint64_t number) const { return (roll(number) >> 40) % 64 * 64; }
    uint32_t word(uint64_t number) const { return static_cast<uint32_t>(roll(number) >> 20); }
};

inline constexpr uint32_t kWritable = 1, kReadable = 2, kCounter = 3;  // handles
inline constexpr uint64_t kMemory = 16'384;

// One end of the one connection of its station.
class Station final : public Host {
public:
    Station(SimulatedWire& wire, uint8_t number, Tuning tuning, const Plan& ours, const Plan& theirs)
        : port(wire, address(number)),
          plan_out(ours),
          plan_in(theirs),
          node(make(tuning, number), address(number), port, *this) {
        wire.attach(port, node);
        written.assign(kMemory, std::byte{0});
        expected_writes.assign(kMemory, std::byte{0});
    }

    // Posts until the queue is full or `count` pieces have been posted.
    void work(uint64_t count, Time now) {
        const uint64_t most = posted + 64;  // Unreliable work is finished at once
        while (is_connected && posted < count && posted < most && posted - finished_count < 64) {
            Work w;
            w.operation = plan_out.operation(posted);
            w.has_immediate = plan_out.immediate(posted);
            w.fence = plan_out.fence(posted);
            w.tag = static_cast<uint32_t>(posted);
            w.total = plan_out.length(posted);
            w.immediate = plan_out.word(posted);
            w.address = plan_out.target(posted);
            w.handle = w.operation == Operation::write  ? kWritable
                       : w.operation == Operation::read ? kReadable
                                                        : kCounter;
            w.operand = 1;
            w.compare = counter_guess;
            if (w.operation >= Operation::fetch_add) w.address = 0;
            if (!send_at_once(w, now) && !node.post(link, w, now)) return;
            ++posted;
        }
    }

    // The short way, where it is offered, for two messages of three. False: post is to be asked.
    bool send_at_once(const Work& w, Time now) {
        std::byte payload[kMaxFrame];
        if (w.operation != Operation::send || w.fence || w.total > sizeof payload ||
            plan_out.roll(posted) % 3 == 0)
            return false;
        for (uint32_t i = 0; i < w.total; ++i) payload[i] = out_byte(posted, i);
        if (!node.post_at_once(link, w.tag, {payload, w.total}, w.has_immediate ? &w.immediate : nullptr,
                               now))
            return false;
        ++at_once;
        return true;
    }

    void fail(std::string why) {
        if (wrong.empty()) wrong = std::move(why);
    }

    // ---- Host: our own work
    bool read_source(Cookie, uint32_t tag, uint32_t offset, std::byte* to, uint32_t n) override {
        for (uint32_t i = 0; i < n; ++i) to[i] = out_byte(full(tag), offset + i);
        return !source_unmapped;
    }
    // In pieces of different sizes, as the segments of a descriptor are.
    uint32_t lend_source(Cookie, uint32_t tag, uint32_t offset, uint32_t n, Piece* pieces) override {
        if (no_zero_copy || source_unmapped) return 0;
        payload_memory.resize(n);
        for (uint32_t i = 0; i < n; ++i) payload_memory[i] = out_byte(full(tag), offset + i);
        uint32_t count = 0;
        for (uint32_t at = 0; at != n; ++count) {
            const uint32_t rest = n - at, part = count + 1 == kMostPieces ? rest : 1 + (rest - 1) * count / 3;
            pieces[count] = {payload_memory.data() + at, part};
            at += part;
        }
        return count;
    }
    bool place_result(Cookie, uint32_t tag, uint32_t offset, const std::byte* from, uint32_t n) override {
        if (result_unmapped) return false;
        const uint64_t number = full(tag);
        if (plan_out.operation(number) == Operation::read) {
            for (uint32_t i = 0; i < n; ++i)
                if (from[i] != pattern(0xEAD, 0, plan_out.target(number) + offset + i))
                    fail("a read brought wrong data");
            return true;
        }
        uint64_t old = 0;
        std::memcpy(&old, from, sizeof old);
        if (old < counter_seen) fail("an atomic saw a counter go back");
        counter_seen = old;
        counter_guess = old;
        return true;
    }
    void on_finished(Cookie, uint32_t tag, Outcome outcome) override {
        if (full(tag) != finished_count) fail("work finished out of order");
        ++finished_count;
        last_outcome = outcome;
        if (outcome == Outcome::ok) ++good_count;
    }

    // ---- Host: the peer's work
    HostResult begin_message(Cookie, uint32_t total) override {
        if (refuse_messages != HostResult::ok) return refuse_messages;
        incoming_total = total;
        incoming_number.reset();
        if (plan_in.reliable) incoming_number = next_message(false);
        if (plan_in.reliable && total != plan_in.length(*incoming_number))
            fail("a message has the wrong length");
        return HostResult::ok;
    }
    void place_message(Cookie, uint32_t offset, const std::byte* from, uint32_t n) override {
        if (offset + n > incoming_total) fail("payload beyond its message");
        if (!plan_in.reliable && offset == 0) {
            if (incoming_total < 8) {
                fail("a message without its number");
                return;
            }
            uint64_t number = 0;
            std::memcpy(&number, from, sizeof number);
            incoming_number = number;
            if (number >= peer_posted_at_most) fail("a message that was not sent");
            if (seen[number % seen.size()] == number + 1) fail("an unreliable message came twice");
            seen[number % seen.size()] = number + 1;
        }
        check_bytes(offset, from, n);
    }
    void end_message(Cookie, uint32_t total, const uint32_t* immediate) override {
        if (plan_in.reliable || total != 0) settle_incoming(immediate);
        check_writes();
        ++taken_receives;
    }
    void abandon_message(Cookie) override {
        if (plan_in.reliable && is_connected) fail("a reliable message was abandoned");
        ++abandoned;
    }
    HostResult begin_write(Cookie, uint32_t handle, uint64_t at, uint32_t total,
                        const uint32_t* immediate) override {
        if (refuse_writes || handle != kWritable || at + total > kMemory) return HostResult::not_permitted;
        incoming_total = total;
        if (plan_in.reliable) {
            incoming_number = next_message(true);
            if (total != plan_in.length(*incoming_number) || at != plan_in.target(*incoming_number))
                fail("a write went astray");
            for (uint32_t i = 0; i < total; ++i)
                expected_writes[at + i] = pattern(plan_in.seed, *incoming_number, i);
        }
        (void)immediate;
        return HostResult::ok;
    }
    HostResult place_write(Cookie, uint32_t, uint64_t at, const std::byte* from, uint32_t n,
                        const uint32_t* immediate) override {
        if (permission_ends) {
            if (immediate != nullptr) ++refused_receives;
            return HostResult::not_permitted;
        }
        if (at + n > kMemory)
            fail("a write beyond its target");
        else
            std::memcpy(&written[at], from, n);
        return HostResult::ok;
    }
    void on_damaged_write(Cookie) override { ++damaged; }
    void end_write(Cookie, uint32_t, const uint32_t* immediate) override {
        if (plan_in.reliable) settle_incoming(immediate);
        check_writes();
        if (immediate != nullptr) ++taken_receives;
    }
    void abandon_write(Cookie, const uint32_t*) override {
        if (plan_in.reliable && is_connected) fail("a reliable write was abandoned");
        ++abandoned;
    }
    HostResult begin_read(Cookie, uint32_t handle, uint64_t, uint32_t) override {
        if (refuse_reads || handle != kReadable) return HostResult::not_permitted;
        step_over(Operation::read);
        return HostResult::ok;
    }
    HostResult read_memory(Cookie, uint32_t, uint64_t at, std::byte* to, uint32_t n) override {
        for (uint32_t i = 0; i < n; ++i) to[i] = pattern(0xEAD, 0, at + i);
        return HostResult::ok;
    }
    HostResult atomic(Cookie, const Work& w, uint64_t* old) override {
        if (w.handle != kCounter) return HostResult::not_permitted;
        step_over(w.operation);
        *old = counter;
        if (w.operation == Operation::fetch_add) {
            counter += w.operand;
            ++adds_done;
        } else if (counter == w.compare) {
            counter = w.compare + w.operand;
            ++adds_done;
        }
        return HostResult::ok;
    }
    void on_other_version(const NicAddress&, uint8_t version) override { version_told = version; }
    void on_auth_failure(const NicAddress&, AuthFailure why) override {
        auth_failure = why;
        ++times_not_authentic;
    }
    uint32_t receives_posted(Cookie) override { return taken_receives + credit_ahead; }

    // ---- Host: connecting
    void on_incoming(Cookie listener, IncomingId id, const EndAddress& remote, const ViTraits&) override {
        listener_cookie = listener;
        incoming_id = id;
        incoming_from = remote;
        ++requests_heard;
    }
    void on_connected(Cookie, const ViTraits&) override { is_connected = true; }
    void on_failed(Cookie, Status why) override { failure = why; }
    void on_ended(Cookie, Ended why) override {
        is_connected = false;
        how_ended = why;
        ++endings;
    }

    SimulatedWire::Port port;
    Plan plan_out, plan_in;
    Node node;
    LinkId link = 0;

    std::string wrong;
    uint64_t posted = 0, finished_count = 0, good_count = 0, at_once = 0;
    Outcome last_outcome = Outcome::ok;
    uint64_t in_next = 0;                                         // number of the peer's next piece of work
    std::vector<uint64_t> seen = std::vector<uint64_t>(1 << 16);  // Unreliable: numbers that have come
    uint64_t peer_posted_at_most = UINT64_MAX;
    uint64_t messages_in = 0, abandoned = 0, damaged = 0;
    uint64_t refused_receives = 0;  // of writes whose permission ended
    uint64_t counter = 0, counter_seen = 0, counter_guess = 0, adds_done = 0;
    uint32_t taken_receives = 0, credit_ahead = 64;
    std::vector<std::byte> written, expected_writes;

    HostResult refuse_messages = HostResult::ok;
    bool refuse_writes = false, refuse_reads = false, source_unmapped = false, result_unmapped = false;
    bool no_zero_copy = false;
    std::vector<std::byte> payload_memory;  // of the last frame
    bool permission_ends = false;        // between the beginning of a write and its first byte
    bool is_connected = false;
    std::optional<Status> failure;
    std::optional<Ended> how_ended;
    std::optional<AuthFailure> auth_failure;
    int times_not_authentic = 0, version_told = 0;
    int endings = 0, requests_heard = 0;
    IncomingId incoming_id = 0;
    Cookie listener_cookie = nullptr;
    EndAddress incoming_from;

private:
    static Tuning make(Tuning t, uint8_t number) {
        t.seed = t.seed * 257 + number;
        return t;
    }
    uint64_t full(uint32_t tag) const {  // tags are 32 bits of a number near finished_count
        return finished_count + static_cast<uint32_t>(tag - static_cast<uint32_t>(finished_count));
    }
    std::byte out_byte(uint64_t number, uint32_t offset) const {
        if (!plan_out.reliable && offset < 8) return reinterpret_cast<const std::byte*>(&number)[offset];
        return pattern(plan_out.seed, number, offset);
    }

    // The peer's next piece of work must be a message (or a write).
    uint64_t next_message(bool write) {
        const Operation op = plan_in.operation(in_next);
        if (op != (write ? Operation::write : Operation::send)) fail("work arrived out of order");
        return in_next;
    }
    void step_over(Operation wanted) {
        if (plan_in.operation(in_next) != wanted) fail("a request arrived out of order");
        ++in_next;
    }
    void check_bytes(uint32_t offset, const std::byte* from, uint32_t n) {
        if (!incoming_number) return;
        for (uint32_t i = plan_in.reliable || offset >= 8 ? 0 : 8 - offset; i < n; ++i)
            if (from[i] != pattern(plan_in.seed, *incoming_number, offset + i))
                return fail("a message is damaged");
    }
    void settle_incoming(const uint32_t* immediate) {
        const uint64_t number = *incoming_number;
        if ((immediate != nullptr) != plan_in.immediate(number) ||
            (immediate != nullptr && *immediate != plan_in.word(number)))
            fail("immediate data is wrong");
        in_next = number + 1;
        ++messages_in;
    }
    // What was written before a message is there when the message is.
    void check_writes() {
        if (plan_in.reliable && (messages_in & 0x3F) == 0 && written != expected_writes)
            fail("memory differs from the model");
    }

    uint32_t incoming_total = 0;
    std::optional<uint64_t> incoming_number;
};

// Two stations on a wire, `a` the client.
struct Pair {
    Pair(uint64_t seed, Tuning tuning, Plan a_plan, Plan b_plan, uint16_t level)
        : wire(seed), a(wire, 1, tuning, a_plan, b_plan), b(wire, 2, tuning, b_plan, a_plan) {
        traits.reliability = level;
        traits.max_transfer = 1 << 20;
        traits.rdma_write = traits.rdma_read = 1;
    }

    bool connect(Time limit = 20'000'000'000) {
        b.node.listen(end_address(2, "here"), &b, wire.now);
        a.link = a.node.request(&a, end_address(1, "me"), end_address(2, "here"), traits, wire.now + limit,
                                wire.now);
        const Time until = wire.now + limit;
        if (!wire.run(until, [&] { return b.requests_heard != 0 || a.failure; }) || a.failure) return false;
        Status why = Status::ok;
        b.link = b.node.accept(b.incoming_id, &b, traits, wire.now, &why);
        if (b.link == 0) return false;
        if (!wire.run(until, [&] { return (a.is_connected && b.is_connected) || a.failure || b.failure; }))
            return false;
        a.node.start(a.link, wire.now);
        b.node.start(b.link, wire.now);
        return a.is_connected && b.is_connected;
    }

    ViTraits traits;
    SimulatedWire wire;
    Station a, b;
};

}  // namespace viaduct::wire::test
