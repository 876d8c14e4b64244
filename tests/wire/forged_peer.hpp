// SPDX-License-Identifier: BSD-2-Clause
// A node alone, and a peer whose every frame the test writes by hand: with the right ids, numbers and passes,
// and with whatever else the test puts in. The host only notes what it is told; time moves when the test says so.
#pragma once

#include <vipl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/simulated_wire.hpp"

namespace viaduct::wire::test {

using Bytes = std::vector<std::byte>;

// The fields of a frame and so many bytes of payload.
template <class Fields>
Bytes body(void (*write)(std::byte*, const Fields&), uint32_t field_bytes, const Fields& fields, uint32_t payload = 0) {
    Bytes bytes(field_bytes + payload, std::byte{0x5A});
    write(bytes.data(), fields);
    return bytes;
}
inline Bytes body_of(const Message& m, uint32_t payload) { return body(write_message, kMessageBytes, m, payload); }
inline Bytes body_of(const Message& m, const Target& t, uint32_t payload) {
    Bytes bytes = body(write_message, kMessageBytes, m, kTargetBytes + payload);
    write_target(bytes.data() + kMessageBytes, t);
    return bytes;
}
inline Bytes body_of(const ReadRequest& r) { return body(write_read_request, kReadRequestBytes, r); }
inline Bytes body_of(const ReadData& d, uint32_t payload) { return body(write_read_data, kReadDataBytes, d, payload); }
inline Bytes body_of(const AtomicRequest& a) { return body(write_atomic_request, kAtomicRequestBytes, a); }
inline Bytes body_of(const AtomicData& a) { return body(write_atomic_data, kAtomicDataBytes, a); }
inline Bytes body_of(const Selective& s) { return body(write_selective, kSelectiveBytes, s); }
inline Bytes body_of(const Prove& p) { return body(write_prove, kProveBytes, p); }
inline Bytes body_of(const Answer& a) { return body(write_answer, kAnswerBytes, a); }
inline Bytes body_of(const Connect& c) { return body(write_connect, kConnectBytes, c); }

class LoneNode final : public Outlet, public Host {
public:
    explicit LoneNode(const Tuning& tuning = {}, uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY)
        : node(tuning, address(2), *this, *this), key_(tuning.key) {
        traits.reliability = level;
        traits.max_transfer = 1 << 20;
        traits.rdma_write = traits.rdma_read = 1;
    }

    // ---- the peer

    static constexpr LinkId kPeer = 0x00070003;
    static constexpr uint64_t kPeerPass = 0x1122334455667788;

    // What the peer says of itself in a request or an accept.
    Connect introduction() const {
        Connect c;
        c.nonce = nonce;
        c.sequence = sequence;
        c.max_frame = 1460;
        c.traits = traits;
        c.window = window;
        c.local = end_address(1, "me");
        c.remote = end_address(2, "here");
        c.pass = kPeerPass;
        return c;
    }
    // The peer asks, and the node accepts.
    void be_accepted() {
        node.listen(end_address(2, "here"), this, now);
        Header h;
        h.kind = Kind::request;
        h.source = kPeer;
        put(h, body_of(introduction()));
        Status why = Status::ok;
        link = node.accept(incoming_id, this, traits, now, &why);
        learn(Kind::accept);
    }
    // The whole hand-shake, and the host is ready.
    void connect() {
        be_accepted();
        put(next(Kind::confirm), body_of(Answer{nonce, 0, 1460}));
        node.start(link, now);
        settle();
        sent.clear();
    }
    // The node asks; the peer has not answered.
    void ask() {
        link = node.request(this, end_address(2, "me"), end_address(1, "here"), traits, now + 60'000'000'000, now);
        settle();
        learn(Kind::request);
    }

    // A header as the peer would write it now.
    Header next(Kind kind) const {
        Header h;
        h.kind = kind;
        h.destination = link;
        h.source = kPeer;
        h.sequence = sequence;
        h.acknowledge = acknowledge;
        h.credit = 1000;
        h.pass = pass;
        return h;
    }
    void put(Header h, const Bytes& fields, const NicAddress& from = address(1)) {
        Bytes frame(kHeaderBytes + fields.size());
        std::copy(fields.begin(), fields.end(), frame.begin() + kHeaderBytes);
        h.length = static_cast<uint16_t>(fields.size());
        if (key_) {
            const bool own = is_of_connection(h.kind);
            h.flags |= kFlagTagged;
            h.pass = tag_of(own ? key_of_direction(*key_, kPeerPass, pass) : *key_, h, own ? whole_ : 0, fields.data());
        }
        seal(frame.data(), h);
        node.input(frame, from, now);
        settle();
    }
    // The next one in sequence.
    void put_next(Kind kind, const Bytes& fields, uint16_t flags = kFlagLast) {
        Header h = next(kind);
        h.flags = flags;
        put(h, fields);
        skip(1);
    }
    // So many frames of the peer are lost on the way.
    void skip(uint32_t frames) {
        sequence += frames;
        whole_ += frames;
    }
    void acknowledge_up_to(uint32_t before_this, const Selective& s = {}) {
        acknowledge = before_this;
        put(next(Kind::acknowledge), body_of(s));
    }

    // ---- the node

    bool post(Operation operation, uint32_t total, bool fence = false) {
        Work w;
        w.operation = operation;
        w.tag = posted++;
        w.total = total;
        w.fence = fence;
        const bool good = node.post(link, w, now);
        settle();
        return good;
    }
    void pass_time(Time how_long) {
        const Time until = now + how_long;
        while (node.next_deadline() <= until) {
            now = std::max(now, node.next_deadline());
            node.advance(now);
            settle();
        }
        now = until;
    }
    void settle() {
        while (node.wants_flush()) node.flush(now);
    }
    LinkReport report() const {
        LinkReport r;
        node.report(link, &r);
        return r;
    }
    uint32_t count(Kind kind) const {
        return static_cast<uint32_t>(
            std::count_if(sent.begin(), sent.end(), [&](const Sent& s) { return s.frame.header.kind == kind; }));
    }

    // ---- Outlet
    std::byte* begin_frame(uint32_t) override { return scratch_; }
    void end_frame(std::byte* frame, uint32_t bytes, const NicAddress&) override {
        Sent s;
        s.bytes.assign(frame, frame + bytes);
        if (read_frame(s.bytes, &s.frame) == Flaw::none) sent.push_back(std::move(s));
    }

    // ---- Host
    bool read_source(Cookie, uint32_t, uint32_t, std::byte* to, uint32_t n) override {
        std::fill_n(to, n, std::byte{0x33});
        return true;
    }
    bool place_result(Cookie, uint32_t, uint32_t, const std::byte*, uint32_t n) override {
        result_bytes += n;
        return true;
    }
    void on_finished(Cookie, uint32_t tag, Outcome) override { finished_tags.push_back(tag); }
    HostResult begin_message(Cookie, uint32_t) override { return answer_to_messages; }
    void place_message(Cookie, uint32_t, const std::byte*, uint32_t) override {}
    void end_message(Cookie, uint32_t, const uint32_t*) override { ++messages; }
    void abandon_message(Cookie) override {}
    HostResult begin_write(Cookie, uint32_t, uint64_t, uint32_t, const uint32_t*) override { return HostResult::ok; }
    HostResult place_write(Cookie, uint32_t, uint64_t, const std::byte*, uint32_t, const uint32_t*) override {
        return HostResult::ok;
    }
    void end_write(Cookie, uint32_t, const uint32_t*) override { ++writes; }
    void abandon_write(Cookie, const uint32_t*) override {}
    HostResult begin_read(Cookie, uint32_t, uint64_t, uint32_t) override {
        ++reads;
        return HostResult::ok;
    }
    HostResult read_memory(Cookie, uint32_t, uint64_t, std::byte* to, uint32_t n) override {
        std::fill_n(to, n, std::byte{0x44});
        return HostResult::ok;
    }
    HostResult atomic(Cookie, const Work&, uint64_t* old) override {
        ++atomics;
        *old = 7;
        return HostResult::ok;
    }
    uint32_t receives_posted(Cookie) override { return 1000; }
    void on_incoming(Cookie, IncomingId id, const EndAddress&, const ViTraits&) override {
        incoming_id = id;
        ++requests;
    }
    void on_request_refused(Cookie listener) override { refused.push_back(listener); }
    void on_connected(Cookie, const ViTraits&) override { is_connected = true; }
    void on_failed(Cookie, Status why) override { failure = why; }
    Finding finding(Cookie) override { return found; }
    void on_finding(Cookie, const Finding& f) override { found_by_peer = f; }
    void on_ended(Cookie, Ended why) override {
        is_connected = false;
        how_ended = why;
    }

    struct Sent {
        Bytes bytes;
        Frame frame;  // of those bytes
    };

    Node node;
    ViTraits traits;
    LinkId link = 0;
    Time now = 1'000'000'000;
    std::vector<Sent> sent;  // by the node

    // What the peer goes by.
    uint64_t nonce = 0x99;
    uint32_t window = kWindow;
    uint32_t sequence = 5000, acknowledge = 0;
    uint64_t pass = 0;  // that frames to the node have to show

    // What the host was told.
    uint32_t posted = 0, result_bytes = 0, messages = 0, writes = 0, reads = 0, atomics = 0, requests = 0;
    std::vector<Cookie> refused;  // listeners, once for each request that was refused
    std::vector<uint32_t> finished_tags;
    IncomingId incoming_id = 0;
    bool is_connected = false;
    std::optional<Status> failure;
    std::optional<Ended> how_ended;
    Finding found, found_by_peer;  // `found`: by the host
    HostResult answer_to_messages = HostResult::ok;

private:
    // What the node says of itself in that frame.
    void learn(Kind kind) {
        for (const Sent& s : sent) {
            Connect c;
            if (s.frame.header.kind != kind || read_connect(s.frame, &c) != Flaw::none) continue;
            acknowledge = c.sequence;
            pass = c.pass;
            if (kind == Kind::request) nonce = c.nonce;
        }
    }

    std::optional<Key> key_;
    uint64_t whole_ = sequence;
    std::byte scratch_[kMaxFrame];
};

}  // namespace viaduct::wire::test
