// SPDX-License-Identifier: BSD-2-Clause
// The fuzzer of the wire protocol: bytes are a script that brings a link into a state and then feeds it
// frames of every kind, well sealed and with any fields that the script gives, from its peer, from an
// unknown host, and as raw bytes. Used by libFuzzer's entry and, with fixed and mutated scripts, by the unit
// tests.
#pragma once

#include <vipl.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/version_answer.hpp"
#include "tests/wire/simulated_wire.hpp"

namespace viaduct::fuzz {

// A host that checks everything: every upcall is compared with what is allowed.
class SuspiciousHost final : public wire::Host {
public:
    static constexpr uint32_t kReceive = 5000;
    static constexpr uint64_t kWindow = 4096;

    void check(bool good) {
        if (!good) std::abort();
    }
    void connected_only() { check(is_connected); }

    bool read_source(wire::Cookie, uint32_t, uint32_t offset, std::byte* to, uint32_t n) override {
        connected_only();
        check(offset + n <= 20'000);
        std::memset(to, 1, n);
        return true;
    }
    bool place_result(wire::Cookie, uint32_t tag, uint32_t offset, const std::byte* from,
                      uint32_t n) override {
        connected_only();
        check(tag < posted && offset + n <= 3000);
        touch(from, n);
        return true;
    }
    void on_finished(wire::Cookie, uint32_t tag, wire::Outcome) override {
        check(tag == finished_count++ && tag < posted);
    }
    wire::HostResult begin_message(wire::Cookie, uint32_t total_bytes) override {
        connected_only();
        check(phase == 0);
        if (total_bytes > kReceive) return wire::HostResult::bad_receive;
        if (receives == 0) return wire::HostResult::no_receive;
        phase = 1;
        total = total_bytes;
        placed = 0;
        return wire::HostResult::ok;
    }
    void place_message(wire::Cookie, uint32_t offset, const std::byte* from, uint32_t n) override {
        connected_only();
        check(phase == 1 && offset == placed && offset + n <= total);
        placed += n;
        touch(from, n);
    }
    void end_message(wire::Cookie, uint32_t bytes, const uint32_t*) override {
        check(phase == 1 && bytes == total && placed == total && receives > 0);
        phase = 0;
        --receives;
    }
    void abandon_message(wire::Cookie) override {
        check(phase == 1);
        phase = 0;
    }
    wire::HostResult begin_write(wire::Cookie, uint32_t handle, uint64_t address, uint32_t total_bytes,
                              const uint32_t*) override {
        connected_only();
        check(phase == 0);
        if (handle != 1 || address > kWindow || total_bytes > kWindow - address)
            return wire::HostResult::not_permitted;
        phase = 2;
        total = total_bytes;
        placed = 0;
        base = address;
        return wire::HostResult::ok;
    }
    wire::HostResult place_write(wire::Cookie, uint32_t, uint64_t address, const std::byte* from, uint32_t n,
                              const uint32_t*) override {
        check(phase == 2 && address == base + placed && placed + n <= total);
        placed += n;
        touch(from, n);
        return wire::HostResult::ok;
    }
    void end_write(wire::Cookie, uint32_t bytes, const uint32_t*) override {
        check(phase == 2 && bytes == total && placed == total);
        phase = 0;
    }
    void abandon_write(wire::Cookie, const uint32_t*) override {
        check(phase == 2);
        phase = 0;
    }
    wire::HostResult begin_read(wire::Cookie, uint32_t handle, uint64_t address, uint32_t bytes) override {
        connected_only();
        return handle == 2 && address <= kWindow && bytes <= kWindow - address ? wire::HostResult::ok
                                                                               : wire::HostResult::not_permitted;
    }
    wire::HostResult read_memory(wire::Cookie, uint32_t handle, uint64_t address, std::byte* to,
                              uint32_t n) override {
        check(handle == 2 && address <= kWindow && n <= kWindow - address);
        std::memset(to, 2, n);
        return wire::HostResult::ok;
    }
    wire::HostResult atomic(wire::Cookie, const wire::Work& w, uint64_t* old) override {
        connected_only();
        check(w.width == 4 || w.width == 8);
        *old = 7;
        return w.handle == 2 ? wire::HostResult::ok : wire::HostResult::not_permitted;
    }
    uint32_t receives_posted(wire::Cookie) override { return 10; }
    void on_incoming(wire::Cookie, wire::IncomingId id, const EndAddress& remote, const ViTraits&) override {
        check(id != 0 && remote.discriminator_len <= kMaxDiscriminator);
        incoming_id = id;
    }
    void on_connected(wire::Cookie, const ViTraits&) override {
        check(!is_connected && attempted);  // no state is reached without the hand-shake
        is_connected = true;
    }
    void on_failed(wire::Cookie, Status) override {
        check(!is_connected && attempted);
        attempted = false;
    }
    wire::Finding finding(wire::Cookie) override {
        return {wire::FindingCode::outside_region, wire::FindingOperation::write, true, 1, 2, 3};
    }
    void on_finding(wire::Cookie, const wire::Finding& f) override {
        connected_only();
        check(f.code != wire::FindingCode::none && f.code < wire::FindingCode::count_);
        check(f.operation < wire::FindingOperation::count_ && f.length <= UINT32_MAX);
        check(f.of_target || (f.handle == 0 && f.address == 0));
        check(f.of_target || (f.code != wire::FindingCode::not_open && f.code != wire::FindingCode::vi_not_enabled));
    }
    void on_ended(wire::Cookie, wire::Ended) override {
        connected_only();
        is_connected = attempted = false;
        phase = 0;
    }

    static void touch(const std::byte* from, uint32_t n) {
        volatile unsigned sum = 0;
        for (uint32_t i = 0; i < n; ++i) sum = sum + static_cast<unsigned>(from[i]);
    }

    bool attempted = false, is_connected = false;
    int phase = 0;
    uint32_t total = 0, placed = 0, receives = 20, posted = 0, finished_count = 0;
    uint64_t base = 0;
    wire::IncomingId incoming_id = 0;
};

// Reads a script. (Its name is its own: the unit tests hold several fuzz targets in one program.)
class FrameScript {
public:
    FrameScript(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool more() const { return at_ != end_; }
    uint8_t byte() { return more() ? *at_++ : uint8_t{0}; }
    uint32_t word() { return uint32_t{byte()} << 8 | byte(); }

private:
    const uint8_t* at_;
    const uint8_t* end_;
};

inline void run_wire(const uint8_t* data, size_t size) {
    using namespace wire;
    struct Sink final : Outlet {
        std::byte* begin_frame(uint32_t) override { return full ? nullptr : room.data(); }
        void end_frame(std::byte* frame, uint32_t bytes, const NicAddress&) override {
            if (bytes == 0) return;
            if (is_version_answer({frame, bytes})) return;
            Frame f;
            if (read_frame({frame, bytes}, &f) != Flaw::none)
                std::abort();  // we never send what we would not read
            if (f.header.source != 0) last_source = f.header.source;
            last_sequence = f.header.sequence;
            if (f.header.kind == Kind::request || f.header.kind == Kind::accept ||
                f.header.kind == Kind::peer_request) {
                Connect c;
                if (read_connect(f, &c) != Flaw::none) std::abort();
                nonce = c.nonce;
                pass = c.pass;
            }
        }
        std::vector<std::byte> room = std::vector<std::byte>(kMaxFrame);
        bool full = false;
        uint32_t last_source = 0, last_sequence = 0;
        uint64_t nonce = 0, pass = 0;
    } sink;
    SuspiciousHost host;
    Tuning tuning;
    tuning.max_frame = 1460;
    tuning.max_links = 4;
    tuning.queue_depth = 32;
    tuning.reorder_frames = 8;
    tuning.pending_connects = 3;
    FrameScript script(data, size);
    const uint8_t begin = script.byte();
    const bool keyed = (begin & 0x40) != 0;  // and the peer has the same key
    if (keyed) tuning.key = Key{1, 2};
    Node node(tuning, test::address(1), sink, host);
    ViTraits traits;
    static constexpr uint16_t kLevels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                           VIP_SERVICE_RELIABLE_RECEPTION};
    traits.reliability = kLevels[begin / 8 % 3];
    traits.max_transfer = 4000;
    const NicAddress peer = test::address(2);
    const EndAddress ours = test::end_address(1, "x"), theirs = test::end_address(2, "x");
    Time now = 1'000'000'000;
    LinkId link = 0;
    constexpr uint32_t kPeerId = 0x00070001;
    constexpr uint64_t kPeerPass = 0x5EC2E7;
    bool knows_pass = true;
    uint32_t peer_sequence = 0xFFFFFFF0;  // next of the peer's stream: close to its wrap
    WholeSequence whole;
    whole.begin(peer_sequence);

    std::vector<std::byte> frame(kMaxFrame);
    const auto feed = [&](Kind kind, uint32_t destination, uint32_t source, uint32_t sequence,
                          uint32_t acknowledge, uint16_t flags, uint32_t payload, const NicAddress& from) {
        Header h;
        h.kind = kind;
        h.flags = flags;
        h.destination = destination;
        h.source = source;
        h.sequence = sequence;
        h.acknowledge = acknowledge;
        h.credit = 5;
        h.pass = !knows_pass ? 1 : kind == Kind::reset || kind == Kind::disconnected ? kPeerPass : sink.pass;
        h.length = static_cast<uint16_t>(field_bytes(kind) + payload);
        if (keyed && knows_pass) {
            const bool inside = is_of_connection(kind);
            h.flags |= kFlagTagged;
            h.pass = tag_of(inside ? key_of_direction(*tuning.key, kPeerPass, sink.pass) : *tuning.key, h,
                            inside ? whole.of(sequence) : 0, frame.data() + kHeaderBytes);
        }
        seal(frame.data(), h);
        node.input({frame.data(), kHeaderBytes + size_t{h.length}}, from, now);
    };
    const auto connect_fields = [&](uint64_t nonce) {
        Connect c;
        c.nonce = nonce;
        c.sequence = peer_sequence;
        c.max_frame = 1460;
        c.arrived = 1460;
        c.traits = traits;
        c.window = 64;
        c.pass = kPeerPass;
        c.local = theirs;
        c.remote = ours;
        write_connect(frame.data() + kHeaderBytes, c);
    };

    // The state to begin in; each is reached the way a real peer reaches it.
    switch (begin % 8) {
        case 0:
            break;
        case 1:  // requesting
        case 2:  // connected as client
            host.attempted = true;
            link = node.request(&host, ours, theirs, traits, now + 10'000'000'000, now);
            if (begin % 8 == 1) break;
            connect_fields(sink.nonce);
            feed(Kind::accept, link, kPeerId, 0, 0, 0, 0, peer);
            break;
        case 3:  // peering
        case 4:  // connected as peer
            host.attempted = true;
            link = node.peer_request(&host, ours, theirs, traits, kNoTime, now);
            if (begin % 8 == 3) break;
            {
                const uint64_t own = sink.nonce;
                connect_fields(99);
                feed(Kind::peer_request, 0, kPeerId, 0, 0, 0, 0, peer);
                connect_fields(own);
                feed(Kind::accept, link, kPeerId, 0, 0, 0, 0, peer);
            }
            break;
        case 5:  // listening
        case 6:  // accepting
        case 7:  // connected as server
            node.listen(ours, &host, now);
            if (begin % 8 == 5) break;
            connect_fields(1234);
            feed(Kind::request, 0, kPeerId, 0, 0, 0, 0, peer);
            Status why;
            host.attempted = true;
            link = node.accept(host.incoming_id, &host, traits, now, &why);
            if (begin % 8 == 6) break;
            write_answer(frame.data() + kHeaderBytes, {1234, 0, 1460});
            feed(Kind::confirm, link, kPeerId, 0, 0, 0, 0, peer);
            break;
    }
    if (host.is_connected && (begin & 0x80) == 0) node.start(link, now);

    static constexpr Kind kKinds[] = {
        Kind::request,    Kind::peer_request,   Kind::accept,     Kind::confirm,      Kind::reject,
        Kind::no_match,   Kind::pending,        Kind::disconnect, Kind::disconnected, Kind::reset,
        Kind::keep_alive, Kind::acknowledge,    Kind::send,       Kind::write,        Kind::read_request,
        Kind::read_data,  Kind::atomic_request, Kind::atomic_data, Kind::withdraw,    Kind::prove};
    for (int steps = 0; script.more() && steps < 200; ++steps) {
        const uint8_t op = script.byte();
        switch (op % 8) {
            default: {  // a frame of some kind, mostly from the peer and in order
                const Kind kind = kKinds[script.byte() % std::size(kKinds)];
                const uint8_t how = script.byte();
                const uint32_t fields = field_bytes(kind);
                const bool has_finding = kind == Kind::disconnect && (how & 1) != 0;
                const uint32_t payload = is_sequenced(kind) ? script.word() % 1400 : has_finding ? kFindingBytes : 0;
                // Plausible fields first; then as many bytes of them as the script gives are its own.
                std::memset(frame.data(), 0, kHeaderBytes + fields + payload);
                std::byte* const at = frame.data() + kHeaderBytes;
                if (fields == kConnectBytes) connect_fields(how & 1 ? sink.nonce : script.byte());
                if (fields == kAnswerBytes && kind <= Kind::withdraw) write_answer(at, {sink.nonce, 0, 1460});
                if (kind == Kind::prove) write_prove(at, {sink.nonce, 1460, script.byte()});
                if (has_finding)
                    for (uint32_t i = 0; i < 4; ++i) store8(at + kEndingBytes + i, script.byte());
                if (kind == Kind::send || kind == Kind::write)
                    write_message(at, {script.byte(), 0, payload, 0});
                if (kind == Kind::write) write_target(at + kMessageBytes, {script.byte(), 1});
                if (kind == Kind::read_request)
                    write_read_request(at, {script.byte(), 2, script.word() % 3000, 0});
                if (kind == Kind::read_data) write_read_data(at, {script.byte(), 0, payload});
                if (kind == Kind::atomic_request) write_atomic_request(at, {8, 2, 0, 1, 2, 1, 8});
                for (uint32_t changes = how >> 6; changes != 0 && fields != 0; --changes)
                    store8(at + script.byte() % fields, script.byte());
                uint32_t sequence = peer_sequence;
                if ((how & 2) != 0) sequence += script.byte();
                const bool unknown = (how & 12) == 12;
                const uint32_t ack = sink.last_sequence + (how & 16 ? script.byte() : 0u);
                knows_pass = (how & 12) != 4;
                feed(kind, how & 32 ? script.word() : link, unknown ? 5 : kPeerId, sequence, ack,
                     static_cast<uint16_t>(op >> 4), payload, (how & 12) == 8 ? test::address(3) : peer);
                if (is_sequenced(kind) && sequence == peer_sequence) ++peer_sequence;
                break;
            }
            case 4: {  // raw bytes
                std::vector<std::byte> raw(script.byte());
                for (std::byte& b : raw) b = static_cast<std::byte>(script.byte());
                node.input(raw, peer, now);
                break;
            }
            case 5:
                now += int64_t{1} << op / 8;
                node.advance(now);
                node.flush(now);
                break;
            case 6: {
                if (!host.is_connected) break;
                Work w;
                const bool reliable = traits.reliability != VIP_SERVICE_UNRELIABLE;
                w.operation = static_cast<Operation>(script.byte() % (reliable ? 5 : 2));
                w.total = w.operation >= Operation::fetch_add ? 8 : script.word() % 3000;
                w.fence = op >= 0x80;
                w.tag = host.posted;
                ++host.posted;
                if (!node.post(link, w, now)) --host.posted;
                break;
            }
            case 7:
                sink.full = (op & 8) != 0;
                if ((op & 0xF0) == 0xF0) {
                    node.disconnect(link, now);
                    host.attempted = host.is_connected = false;
                    host.phase = 0;
                } else if ((op & 0xF0) == 0xE0) {  // looks in: finds what has been kept, or nothing
                    node.unlisten(node.listen(ours, &host, now));
                } else if ((op & 0xF0) == 0xD0 && !host.attempted) {
                    Status why;
                    link = node.accept(host.incoming_id, &host, traits, now, &why);
                    host.attempted = link != 0;
                    host.finished_count = host.posted;  // what a link before left undone went with it
                }
                node.flush(now);
                break;
        }
    }
    // Whatever happened: in the end everything is given back.
    sink.full = false;
    host.attempted = host.is_connected = false;
    if (link != 0) node.disconnect(link, now);
    for (int i = 0; i < 100; ++i) {
        now += 50'000'000;
        node.advance(now);
        node.flush(now);
    }
    if (node.links_in_use() != 0 || node.frames_early() != 0 || node.connects_pending() > tuning.pending_connects)
        std::abort();
}

}  // namespace viaduct::fuzz
