// SPDX-License-Identifier: BSD-2-Clause
// What tests of the table of connections share: effects as a list, and time as a number.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kagent/connection_table.hpp"

namespace viaduct::kagent::table_testing {

inline constexpr int64_t kMs = 1'000'000;

struct Event {
    std::string what;  // "incoming", "failed", "joined", "too_late"
    Party who;
    Status status = Status::ok;
    uint64_t number = 0;  // incoming or connection
    uint32_t side = 0;
    End peer;
};

class Recorder final : public ConnectionEffects {
public:
    void on_incoming(const Party& w, const Incoming& in) override {
        events.push_back({"incoming", w, Status::ok, in.incoming, 0, {}});
        last_incoming = in;
    }
    void on_failed(const Party& w, Status s) override { events.push_back({"failed", w, s, 0, 0, {}}); }
    void on_no_match(const Party& w, const EndAddress&, const EndAddress* nearest) override {
        nearest_wait = nearest != nullptr ? *nearest : EndAddress();
        on_failed(w, Status::no_match);
    }
    Status make(uint64_t c, const End&, const End&) override {
        if (make_result == Status::ok) shared.push_back(c);
        return make_result;
    }
    bool on_joined(uint64_t c, const End& own, const End& peer, uint32_t side) override {
        if (own.party.session == has_no_descriptors) return false;
        events.push_back({"joined", own.party, Status::ok, c, side, peer});
        return true;
    }
    bool on_joined_both(uint64_t c, const End& first, const End& second) override {
        const bool both =
            first.party.session != has_no_descriptors && second.party.session != has_no_descriptors;
        for (const auto& [own, peer, side] :
             {std::tuple(&first, &second, 0U), std::tuple(&second, &first, 1U)}) {
            if (both)
                on_joined(c, *own, *peer, side);
            else
                on_failed(own->party, Status::out_of_resources);
        }
        return both;
    }
    void on_settled(uint64_t c) override { std::erase(shared, c); }
    void on_cancel_too_late(const Party& w) override { events.push_back({"too_late", w, Status::ok, 0, 0, {}}); }
    void on_ticket_opened(uint64_t session) override { ++open[session]; }
    void on_ticket_closed(uint64_t session) override { --open[session]; }

    Event take() {
        if (events.empty()) return {"nothing", {}, Status::ok, 0, 0, {}};
        Event e = events.front();
        events.erase(events.begin());
        return e;
    }
    std::vector<Event> events;
    std::vector<uint64_t> shared;  // made and not settled
    std::map<uint64_t, int> open;
    Incoming last_incoming;
    EndAddress nearest_wait;  // of the last request without a match
    Status make_result = Status::ok;
    uint64_t has_no_descriptors = 0;  // a session that on_joined() refuses
};

class ConnectionTableTest : public ::testing::Test {
protected:
    static ConnectionRules rules() {
        ConnectionRules r;
        r.grace_ns = 100 * kMs;
        r.confirm_ns = 1000 * kMs;
        r.max_incoming = 3;
        return r;
    }
    static EndAddress at(uint8_t host, const std::string& d) {
        EndAddress a;
        a.host.bytes[5] = host;
        a.discriminator_len = static_cast<uint16_t>(d.size());
        std::memcpy(a.discriminator, d.data(), d.size());
        return a;
    }
    static ViTraits traits(uint64_t mtu = 65600) {
        ViTraits t;
        t.reliability = 2;
        t.max_transfer = mtu;
        return t;
    }
    static End end(uint64_t session, uint32_t ticket, const EndAddress& local, uint64_t domain = 1) {
        End e;
        e.party = {session, ticket, session * 100};
        e.domain = domain;
        e.local = local;
        e.traits = traits();
        e.words = {static_cast<uint32_t>(session)};
        return e;
    }
    // Session 1 waits at d, session 2 asks for it; returns the incoming's number.
    uint64_t meet(const std::string& d = "d", Deadline deadline = kNever) {
        table.wait(end(1, 10, at(1, d)));
        table.request(end(2, 20, at(1, "client")), at(1, d), deadline, now);
        const Event e = fx.take();
        EXPECT_EQ(e.what, "incoming");
        EXPECT_EQ(e.who.session, 1u);
        return e.number;
    }
    void accept(uint64_t incoming, uint32_t ticket = 11, const ViTraits& t = traits()) {
        table.accept({1, ticket, 100}, incoming, t, {7}, now);
    }
    void pass(int64_t ms) {
        now += ms * kMs;
        table.expire(now);
    }

    Recorder fx;
    ConnectionTable table{rules(), fx};
    int64_t now = 5'000'000'000;
};

}  // namespace viaduct::kagent::table_testing
