// SPDX-License-Identifier: BSD-2-Clause
// Anything may happen to the table of connections: random operations against a plain model.
#include "kagent/connection_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kagent_connection_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace table_testing;

// Random operations of a few sessions, compared with a plain list of which requests should meet, and with what must
// hold at all times: every ticket is answered once, nothing is said to the dead, nothing is left in the end.
class ConnectionModelTest : public ::testing::TestWithParam<uint32_t> {};

struct ModelRequest {
    Party party;
    std::string key;
    int64_t grace_end;
};

TEST_P(ConnectionModelTest, EveryTicketIsAnsweredOnceAndWaitersMeetRequestsInOrder) {
    std::mt19937 random(GetParam());
    const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    Recorder fx;
    ConnectionRules rules;
    rules.grace_ns = 100 * kMs;
    rules.confirm_ns = 300 * kMs;
    rules.max_incoming = 1000;
    ConnectionTable table(rules, fx);
    int64_t now = 1;
    uint64_t next_session = 1;
    uint32_t next_ticket = 1;
    std::vector<uint64_t> alive;
    std::set<std::pair<uint64_t, uint32_t>> open;  // tickets that want an answer
    std::vector<std::pair<Party, uint64_t>> incomings, unconfirmed;
    std::vector<ModelRequest> waits, held;
    std::map<uint64_t, int> joined_sides;

    const auto address = [&](uint32_t i) {
        EndAddress a;
        a.host.bytes[5] = static_cast<uint8_t>(i % 2);
        a.discriminator_len = 1;
        a.discriminator[0] = static_cast<uint8_t>('a' + i % 3);
        return a;
    };
    const auto key_of = [](const EndAddress& a) {
        return std::to_string(a.host.bytes[5]) + static_cast<char>(a.discriminator[0]);
    };
    const auto new_end = [&](uint64_t session) {
        End e;
        e.party = {session, next_ticket++, session};
        e.domain = 1;
        e.local = address(pick(6));
        e.traits.reliability = 2;
        open.insert({session, e.party.ticket});
        return e;
    };
    const auto forget = [](std::vector<ModelRequest>& list, const Party& p) {
        std::erase_if(list, [&](const ModelRequest& r) {
            return r.party.session == p.session && r.party.ticket == p.ticket;
        });
    };
    const auto drain = [&] {
        for (; !fx.events.empty();) {
            const Event e = fx.take();
            ASSERT_TRUE(std::find(alive.begin(), alive.end(), e.who.session) != alive.end())
                << "said to the dead: " << e.what;
            ASSERT_EQ(open.erase({e.who.session, e.who.ticket}), 1u)
                << "answered twice or unasked: " << e.what;
            forget(held, e.who);
            forget(waits, e.who);
            if (e.what == "incoming") incomings.push_back({e.who, e.number});
            if (e.what == "joined" && e.side == 0) unconfirmed.push_back({e.who, e.number});
            if (e.what == "joined") {
                joined_sides[e.number] += 1;
                ASSERT_LE(joined_sides[e.number], 2);
            }
        }
    };

    for (int step = 0; step < 4000; ++step) {
        if (alive.size() < 2 || (alive.size() < 6 && pick(20) == 0)) alive.push_back(next_session++);
        const uint64_t session = alive[pick(static_cast<uint32_t>(alive.size()))];
        switch (pick(12)) {
            case 0:
            case 1: {
                const End e = new_end(session);
                const auto first = std::find_if(held.begin(), held.end(),
                                                [&](const auto& r) { return r.key == key_of(e.local); });
                const bool expects = first != held.end();
                waits.push_back({e.party, key_of(e.local), 0});
                const size_t before = incomings.size();
                table.wait(e);
                if (expects) {
                    ASSERT_EQ(fx.events.size(), 1u);
                    ASSERT_EQ(fx.events[0].what, "incoming");
                    const Party met = first->party;
                    drain();
                    forget(held, met);
                    ASSERT_EQ(incomings.size(), before + 1);
                }
                break;
            }
            case 2:
            case 3: {
                const End e = new_end(session);
                const EndAddress remote = address(pick(6));
                const auto first = std::find_if(waits.begin(), waits.end(),
                                                [&](const auto& r) { return r.key == key_of(remote); });
                if (first == waits.end()) {
                    held.push_back({e.party, key_of(remote), now + rules.grace_ns});
                    table.request(e, remote, kNever, now);
                    ASSERT_TRUE(fx.events.empty());
                } else {
                    const Party expected = first->party;
                    table.request(e, remote, now + pick(400) * kMs, now);
                    ASSERT_EQ(fx.events.size(), 1u);
                    ASSERT_EQ(fx.events[0].who.ticket, expected.ticket)
                        << "waiters are served in their order";
                }
                break;
            }
            case 4:
            case 5: {
                const End e = new_end(session);
                table.peer(e, address(pick(6)), pick(3) == 0 ? kNever : now + pick(400) * kMs, now);
                break;
            }
            case 6:
            case 7:
                if (!incomings.empty()) {
                    const size_t i = pick(static_cast<uint32_t>(incomings.size()));
                    const auto [owner, number] = incomings[i];
                    incomings.erase(incomings.begin() + static_cast<long>(i));
                    if (pick(4) == 0) {
                        ASSERT_EQ(table.reject(owner, number), Status::ok);
                    } else {
                        const Party who{owner.session, next_ticket++, owner.context};
                        open.insert({who.session, who.ticket});
                        ViTraits t;
                        t.reliability = 2;
                        table.accept(who, number, t, {}, now);
                    }
                }
                break;
            case 8:
                if (!unconfirmed.empty()) {
                    const auto [who, number] = unconfirmed.back();
                    unconfirmed.pop_back();
                    table.confirm(who.session, number);
                }
                break;
            case 9:
                if (!open.empty()) {
                    auto it = open.begin();
                    std::advance(it, pick(static_cast<uint32_t>(open.size())));
                    const auto [s, ticket] = *it;
                    const Party canceller{s, next_ticket++, 0};
                    const auto how = table.cancel(canceller, ticket);
                    if (how == ConnectionTable::Cancelled::done) {
                        open.erase({s, ticket});
                        forget(waits, {s, ticket, 0});
                        forget(held, {s, ticket, 0});
                    } else if (how == ConnectionTable::Cancelled::later) {
                        open.insert({canceller.session, canceller.ticket});
                    }
                }
                break;
            case 10: {
                now += pick(60) * kMs;
                table.expire(now);
                drain();
                for (const auto& r : held)
                    ASSERT_GT(r.grace_end, now) << "a request is held beyond its grace";
                break;
            }
            case 11:
                if (pick(6) == 0 && alive.size() > 2) {
                    std::erase(alive, session);
                    std::erase_if(open, [&](const auto& t) { return t.first == session; });
                    const auto dead = [&](const auto& r) { return r.party.session == session; };
                    std::erase_if(waits, dead);
                    std::erase_if(held, dead);
                    std::erase_if(incomings, [&](const auto& i) { return i.first.session == session; });
                    std::erase_if(unconfirmed, [&](const auto& i) { return i.first.session == session; });
                    table.session_ended(session, now);
                    // Requests that had met it are held again; the plain lists need not follow them further.
                    drain();
                    now += rules.grace_ns;
                    table.expire(now);
                    drain();
                }
                break;
        }
        drain();
        if (HasFatalFailure()) return;
        size_t tickets = 0;
        for (const auto& [s, n] : fx.open) tickets += static_cast<size_t>(n);
        ASSERT_LE(tickets, open.size());
    }
    while (!alive.empty()) {
        const uint64_t session = alive.back();
        alive.pop_back();
        table.session_ended(session, now);
        fx.events.clear();
    }
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
    EXPECT_EQ(table.next_deadline(), kNever);
    EXPECT_TRUE(fx.shared.empty());
    for (const auto& [s, n] : fx.open) EXPECT_EQ(n, 0) << "session " << s;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConnectionModelTest, ::testing::Range(1u, 31u));

}  // namespace
}  // namespace viaduct::kagent
